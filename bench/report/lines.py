"""The lines of the table: one for each comparison, as text, for the terminal and the page alike."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.fleet import ALIPES
from bench.results import RowResult, Spread
from bench.rows.row import Better, Target

MISSING = "-"


@dataclass(frozen=True)
class Line:
    """One comparison."""

    #: What was measured and in which unit.
    work: str
    #: The contender's own figure, with its name where that is not alipes.
    of: str
    #: What it is compared with, and that one's figure.
    against: str
    #: Median, and in brackets the least and the greatest of the rounds.
    found: str
    #: The other's processor time for a request, in multiples of the contender's own; likewise.
    processor_time: str
    to_reach: str
    reached: bool | None


def lines(result: RowResult) -> Iterator[Line]:
    """The comparisons of a row; those whose contenders were not measured are left out."""
    for target in result.facts.targets:
        found = result.comparison(target)
        if found is None:
            continue
        digits = _ratio if target.against is not None else _figure
        yield Line(
            work=f"{result.facts.title} ({result.facts.unit})",
            of=_with_figure(result, target.of),
            against=MISSING if target.against is None else _with_figure(result, target.against),
            found=_spread(found, digits),
            processor_time=_spread(result.processor_time(target), _ratio),
            to_reach=_bound(result, target),
            reached=result.reached(target),
        )


def figure(result: RowResult, label: str) -> str:
    """A contender's median, in the row's unit."""
    return _figure(result.figure(label).median)


def _with_figure(result: RowResult, label: str) -> str:
    return figure(result, label) if label == ALIPES else f"{label}: {figure(result, label)}"


def _bound(result: RowResult, target: Target) -> str:
    if target.bound is None:
        return MISSING
    sign = "≥" if result.facts.better is Better.MORE else "≤"
    unit = "" if target.against is not None else f" {result.facts.unit.partition(',')[0]}"
    return f"{sign} {target.bound:g}{unit}"


def _spread(found: Spread | None, digits: Callable[[float], str]) -> str:
    if found is None:
        return MISSING
    return f"{digits(found.median)} ({digits(found.least)} to {digits(found.greatest)})"


def _figure(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
