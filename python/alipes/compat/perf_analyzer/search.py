"""Which levels are measured, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from alipes.compat.perf_analyzer.level import MeasuredLevel
from alipes.compat.perf_analyzer.settings import Load

__all__ = ["search"]

_ENDING = ("over_limit", "interrupted", "failed")
"""Outcomes that end a search of each level."""


def search(load: Load, measure: Callable[[float], MeasuredLevel]) -> Iterator[MeasuredLevel]:
    """Measures the levels of a load.

    Args:
        load: The range.
        measure: Measures one level.
    """
    yield from (_halving if load.binary_search else _each)(load, measure)


def _each(load: Load, measure: Callable[[float], MeasuredLevel]) -> Iterator[MeasuredLevel]:
    """From the start by steps to the end; without an end until the latency limit."""
    number = 0
    while True:
        level = measure(load.start + number * load.step)
        yield level
        number += 1
        following = load.start + number * load.step
        is_over = load.end > 0 and following > load.end + 1e-9 * load.step
        if level.outcome in _ENDING or is_over or load.mode in ("intervals", "periodic"):
            return


def _halving(load: Load, measure: Callable[[float], MeasuredLevel]) -> Iterator[MeasuredLevel]:
    """The ends, then the middle of what is left, until it is no wider than a step."""
    low, high = load.start, max(load.end, load.start)
    for value in (low, high):
        level = measure(value)
        yield level
        if level.outcome in ("interrupted", "failed") or low == high:
            return
        if level.outcome == "over_limit":
            if value == low:
                return
            break
    else:
        return
    while high - low > load.step:
        middle = (low + high) / 2
        middle = float(int(middle)) if load.mode == "concurrency" else middle
        level = measure(middle)
        yield level
        if level.outcome in ("interrupted", "failed"):
            return
        low, high = (low, middle) if level.outcome == "over_limit" else (middle, high)
