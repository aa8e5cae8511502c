"""Contenders take turns, so that what the machine does meanwhile happens to all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.fleet import Fleet
from bench.rows.row import Better, Cell, Facts, Sample
from bench.run import WARM_UP_S, Plan, measure


@dataclass
class _Row:
    facts: Facts
    calls: list[tuple[str, float]] = field(default_factory=list)

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        return [Cell(label, lambda seconds, label=label: self._measure(label, seconds)) for label in "ab"]

    def _measure(self, label: str, seconds: float) -> Sample:
        self.calls.append((label, seconds))
        return Sample(float(len(self.calls)))


def _measured(facts: Facts, plan: Plan) -> tuple[_Row, dict[str, list[float]]]:
    row = _Row(facts)
    result = measure(row, Fleet(frozenset()), plan, lambda title, step: None)
    return row, {label: [sample.value for sample in samples] for label, samples in result.samples.items()}


def test_contenders_alternate_after_an_unrecorded_warm_up() -> None:
    row, values = _measured(Facts("row", "a row", "s", Better.MORE, ()), Plan(rounds=2, seconds=3.0))
    assert row.calls == [("a", WARM_UP_S), ("b", WARM_UP_S)] + [("a", 3.0), ("b", 3.0)] * 2
    assert values == {"a": [3.0, 5.0], "b": [4.0, 6.0]}


def test_a_row_in_pieces_takes_the_same_time_in_more_turns() -> None:
    row, _ = _measured(Facts("row", "a row", "s", Better.LESS, (), pieces=4), Plan(rounds=1, seconds=2.0))
    assert row.calls[2:] == [("a", 0.5), ("b", 0.5)] * 4


def test_a_row_that_is_measured_once_ignores_the_rounds() -> None:
    row, values = _measured(Facts("row", "a row", "MB", Better.LESS, (), once=True), Plan(rounds=5, seconds=1.0))
    assert row.calls == [("a", 1.0), ("b", 1.0)]
    assert values == {"a": [1.0], "b": [2.0]}
