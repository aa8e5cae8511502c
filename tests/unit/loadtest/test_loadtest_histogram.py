"""Histograms of times."""

from __future__ import annotations

import numpy as np
import pytest
from alipes.loadtest import Histogram


def of(*times_ms: float) -> Histogram:
    times, counts = np.unique(np.array(times_ms) * 1e6, return_counts=True)
    return Histogram(times.astype(np.uint64), counts.astype(np.uint64))


def test_figures_are_those_of_the_times() -> None:
    histogram = of(1, 1, 2, 3, 10)
    assert (histogram.count, histogram.max_ms) == (5, 10)
    assert histogram.mean_ms == pytest.approx(3.4)
    assert histogram.std_ms == pytest.approx(np.std([1, 1, 2, 3, 10]))


@pytest.mark.parametrize("percent", [0, 1, 20, 40, 41, 50, 60, 80, 99, 100])
def test_a_percentile_is_the_time_that_so_many_did_not_exceed(percent: float) -> None:
    times = [1.0, 1.0, 2.0, 3.0, 10.0]
    expected = np.percentile(times, percent, method="inverted_cdf")
    assert of(*times).percentile_ms(percent) == expected


def test_parts_add_up() -> None:
    merged = Histogram.merged([of(1, 2), Histogram(), of(2, 5)])
    assert merged.times_ns.tolist() == [1_000_000, 2_000_000, 5_000_000]
    assert merged.counts.tolist() == [1, 2, 1]


def test_without_times_there_are_no_figures() -> None:
    for histogram in (Histogram(), Histogram.merged([])):
        assert histogram.count == 0
        assert np.isnan([histogram.mean_ms, histogram.max_ms, histogram.std_ms, histogram.percentile_ms(99)]).all()
