"""Which levels are measured, and when a level has settled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from alipes.compat.perf_analyzer.level import MeasuredLevel, Outcome, agreement
from alipes.compat.perf_analyzer.search import search
from alipes.compat.perf_analyzer.settings import Load, Measuring
from alipes.compat.perf_analyzer.windows import MeasuredWindow
from alipes.loadtest import Histogram, Window


def window(rate: int, latency_ms: float = 1.0) -> MeasuredWindow:
    latencies = Histogram(np.array([int(latency_ms * 1e6)], np.uint64), np.array([rate], np.uint64))
    return MeasuredWindow(Window(1.0, latencies, Histogram(), Histogram(), 0.0, 0.0, 0.0))


def values(load: Load, outcome: Callable[[float], Outcome] = lambda value: "settled") -> list[float]:
    return [level.value for level in search(load, lambda value: MeasuredLevel(value, [window(1)], outcome(value)))]


def above(limit: float) -> Callable[[float], Outcome]:
    return lambda value: "over_limit" if value > limit else "settled"


@pytest.mark.parametrize(
    ("load", "levels"),
    [
        (Load(), [1]),
        (Load(start=4), [4]),
        (Load(start=2, end=6, step=2), [2, 4, 6]),
        (Load(start=1, end=4, step=2), [1, 3]),
        (Load("request_rate", 0.1, 0.3, 0.1), [0.1, 0.2, 0.3]),
        (Load("intervals", 500, 500), [500]),
        (Load(binary_search=True, end=8), [1, 8]),
        (Load(binary_search=True), [1]),
    ],
)
def test_levels_come_in_their_order(load: Load, levels: list[float]) -> None:
    assert values(load) == pytest.approx(levels)


def test_without_an_end_levels_rise_to_the_latency_limit() -> None:
    assert values(Load(end=0, step=2), above(6)) == [1, 3, 5, 7]


def test_halving_finds_the_last_level_within_the_limit() -> None:
    assert values(Load(binary_search=True, end=16), above(5)) == [1, 16, 8, 4, 6, 5]
    assert values(Load(binary_search=True, end=16), above(0)) == [1]


def test_a_level_that_did_not_settle_does_not_end_the_range() -> None:
    assert values(Load(end=3), lambda value: "not_settled") == [1, 2, 3]


@pytest.mark.parametrize("outcome", ["failed", "interrupted", "over_limit"])
def test_a_failure_or_the_limit_ends_the_range(outcome: Outcome) -> None:
    assert values(Load(end=3), lambda value: outcome) == [1]


@pytest.mark.parametrize(
    ("windows", "agree"),
    [
        ([window(100)] * 2, (False, False)),
        ([window(100), window(104), window(110)], (True, True)),
        ([window(100), window(104), window(111)], (False, True)),
        ([window(100), window(100), window(100, 1.2)], (True, False)),
        ([window(1), window(100), window(100), window(100)], (True, True)),
    ],
)
def test_the_last_three_windows_have_to_agree(windows: list[MeasuredWindow], agree: tuple[bool, bool]) -> None:
    assert agreement(windows, Measuring()) == agree


def test_figures_come_from_the_windows_that_agree() -> None:
    windows = [window(1), window(100), window(100), window(100)]
    assert MeasuredLevel(1, windows, "settled").result.client.answers == 300
    assert MeasuredLevel(1, windows, "not_settled").result.client.answers == 301
