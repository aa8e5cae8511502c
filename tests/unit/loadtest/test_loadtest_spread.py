"""How far a figure may lie from the one that was seen."""

from __future__ import annotations

import numpy as np
import pytest
from alipes.loadtest import Interval
from alipes.loadtest.spread import is_settled


def test_an_interval_is_students() -> None:
    """Three values: t is 4.303, the standard error 1 / sqrt(3)."""
    interval = Interval.of([9.0, 10.0, 11.0])
    assert interval.mean == 10
    half = 4.303 / 3**0.5
    assert [interval.low, interval.high] == pytest.approx([10 - half, 10 + half])
    assert interval.share == pytest.approx(4.303 / 3**0.5 / 10)


@pytest.mark.parametrize("windows", [2, 5, 40])
def test_it_holds_the_truth_in_95_of_100_runs(windows: int) -> None:
    random = np.random.default_rng(1)
    runs = [Interval.of(random.normal(100, 5, windows).tolist()) for _ in range(4000)]
    held = np.mean([run.low <= 100 <= run.high for run in runs])
    assert 0.94 < held < 0.96


@pytest.mark.parametrize("spread", [1, 5, 10])
def test_it_holds_the_truth_where_windows_were_chosen_for_their_agreement(spread: float) -> None:
    random = np.random.default_rng(2)
    held = []
    for _ in range(3000):
        windows = random.normal(100, spread, 10).tolist()
        end = next((end for end in range(3, 10) if is_settled(windows[end - 3 : end], 0.1)), 10)
        used = 3 if is_settled(windows[end - 3 : end], 0.1) else end
        run = Interval.of(windows[end - used : end], windows[: end - used])
        held.append(run.low <= 100 <= run.high)
    assert 0.92 < np.mean(held) < 0.97


def test_a_slow_beginning_does_not_widen_it() -> None:
    steady = [100.0, 101.0, 102.0]
    assert Interval.of(steady, [20.0]).share < 1.1 * Interval.of(steady).share


def test_a_single_window_has_no_bounds() -> None:
    interval = Interval.of([3.0])
    assert interval.mean == 3
    assert np.isnan([interval.low, interval.high, interval.share]).all()


@pytest.mark.parametrize(
    ("values", "settled"), [([100, 105, 110], True), ([100, 105, 111], False), ([0, 0, 0], False), ([5], True)]
)
def test_windows_settle_where_they_agree(values: list[float], settled: bool) -> None:
    assert is_settled(values, 0.1) is settled
