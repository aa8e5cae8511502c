"""Slopes with confidence: a trend is found, noise that wanders is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.soak.slope import slope_of

HOUR_S = 3600


def seconds(count: int) -> NDArray[np.float64]:
    """The times of samples a second apart, in hours."""
    return np.arange(count) / HOUR_S


def wandering(seed: int, count: int, alike: float) -> NDArray[np.float64]:
    """Noise of which each sample inherits a share of the one before it, of a standard deviation of 1."""
    fresh = np.random.default_rng(seed).standard_normal(2 * count) * np.sqrt(1 - alike**2)
    # What came before the first sample is as long as what is looked at.
    for at in range(1, len(fresh)):
        fresh[at] += alike * fresh[at - 1]
    return fresh[count:]


@given(
    per_hour=st.floats(-1e6, 1e6),
    first=st.floats(-1e6, 1e6),
    count=st.integers(12, 2000),
    begin=st.floats(0, 100),
)
@settings(deadline=None)
def test_a_straight_line_has_its_slope(per_hour: float, first: float, count: int, begin: float) -> None:
    hours = begin + seconds(count)
    values = first + per_hour * hours
    slope = slope_of(hours, values)
    assert slope is not None
    rounding = 1e-9 * max(1e-3, np.abs(values).max()) / (hours[-1] - hours[0])
    assert slope.per_hour == pytest.approx(per_hour, abs=rounding, rel=1e-9)
    assert slope.low <= slope.per_hour <= slope.high
    assert slope.high - slope.low == pytest.approx(0, abs=100 * rounding)
    assert slope.at(hours[0], slope.per_hour) == pytest.approx(values[0], abs=1e-6 * np.abs(values).max() + 1e-9)


@given(value=st.floats(-1e12, 1e12), count=st.integers(12, 2000))
@settings(deadline=None)
def test_a_constant_has_none(value: float, count: int) -> None:
    slope = slope_of(seconds(count), np.full(count, value))
    assert slope is not None
    assert (slope.low, slope.per_hour, slope.high, slope.middle) == (0, 0, 0, value)


@given(seed=st.integers(0, 1 << 30), times=st.floats(1e-3, 1e3), more=st.floats(-100, 100), scale=st.floats(0.1, 10))
@settings(deadline=None, max_examples=30)
def test_a_trend_adds_to_the_slope_and_to_both_bounds(seed: int, times: float, more: float, scale: float) -> None:
    hours, noise = seconds(600) * scale, times * wandering(seed, 600, 0.9)
    plain, moved = slope_of(hours, noise), slope_of(hours, noise + more * hours)
    assert plain is not None
    assert moved is not None
    for name in ("per_hour", "low", "high"):
        # Medians of parts move by what the part rises.
        assert getattr(moved, name) == pytest.approx(
            getattr(plain, name) + more, abs=0.05 * (plain.high - plain.low) + abs(more) * 0.05
        )


@pytest.mark.parametrize("alike", [0.0, 0.9, 0.99, 0.998])
def test_noise_that_wanders_is_seldom_called_growth(alike: float) -> None:
    """Of 200 flat series at most one in forty should be above; twice as many are allowed to chance and shortness."""
    above = 0
    for seed in range(200):
        slope = slope_of(seconds(1200), wandering(seed, 1200, alike))
        assert slope is not None
        above += slope.low > 0
    assert above <= 10


def test_the_usual_error_would_call_it_growth() -> None:
    """Why the interval is not that of independent samples."""
    above = 0
    for seed in range(100):
        hours, values = seconds(1200), wandering(seed, 1200, 0.99)
        away = hours - hours.mean()
        slope = away @ values / (away @ away)
        residuals = values - values.mean() - slope * away
        above += slope > 2 * np.sqrt(residuals @ residuals / 1200 / (away @ away))
    assert above > 30


@pytest.mark.parametrize("alike", [0.0, 0.9, 0.99])
def test_a_trend_in_noise_is_found(alike: float) -> None:
    """The interval holds the true slope nineteen times in twenty, or nearly, and is above nothing."""
    holds = found = 0
    for seed in range(100):
        values = 12 * seconds(3600) + wandering(seed, 3600, alike)
        slope = slope_of(seconds(3600), values)
        assert slope is not None
        holds += slope.low <= 12 <= slope.high
        found += slope.low > 0
    assert holds >= 88
    assert found >= 99


def test_bursts_of_seconds_do_not_move_a_slope() -> None:
    values = wandering(1, 3600, 0.5)
    bursts = values.copy()
    bursts[np.arange(0, 3600, 97)] += 1000
    calm, burst = slope_of(seconds(3600), values), slope_of(seconds(3600), bursts)
    assert calm is not None
    assert burst is not None
    assert burst.per_hour == pytest.approx(calm.per_hour, abs=0.2)


@pytest.mark.parametrize("count", [0, 1, 11])
def test_a_few_samples_have_no_slope(count: int) -> None:
    assert slope_of(seconds(count), np.zeros(count)) is None


def test_samples_of_one_moment_have_no_slope() -> None:
    assert slope_of(np.zeros(20), np.arange(20.0)) is None
