"""How many times one measure is another."""

from __future__ import annotations

import numpy as np
import pytest
from alipes.loadtest.ratio import Ratio


def rounds(seed: int, number: int, ratio: float = 1.0, order: float = 1.0) -> Ratio:
    """A comparison on a machine that drifts, where being second in a round multiplies by `order`."""
    random = np.random.default_rng(seed)
    drift = np.exp(np.cumsum(random.normal(0, 0.05, number)))
    noise = np.exp(random.normal(0, 0.03, (2, number)))
    later = np.where(np.arange(number) % 2 == 0, 1.0, order)
    first = 100 * drift * noise[0] * later
    second = 100 * drift * noise[1] * ratio * (order / later)
    return Ratio.of(first.tolist(), second.tolist())


@pytest.mark.parametrize("number", [4, 5, 10, 30])
@pytest.mark.parametrize("order", [1.0, 1.3])
def test_it_holds_the_truth_in_95_of_100_comparisons(number: int, order: float) -> None:
    seen = [rounds(seed, number, 1.25, order) for seed in range(3000)]
    assert 0.935 < np.mean([one.low <= 1.25 <= one.high for one in seen]) < 0.965


def test_what_being_second_costs_is_in_neither_the_ratio_nor_its_spread() -> None:
    plain, disturbed = rounds(1, 10), rounds(1, 10, order=2.0)
    assert disturbed.value == pytest.approx(plain.value)
    assert disturbed.high / disturbed.low == pytest.approx(plain.high / plain.low)
    assert disturbed.order / plain.order == pytest.approx(2.0)


def test_drift_that_meets_both_costs_no_accuracy() -> None:
    ratio = Ratio.of([100, 50, 400, 200], [110, 55, 440, 220])
    assert [ratio.value, ratio.low, ratio.high] == pytest.approx([1.1] * 3)
    assert ratio.differs


@pytest.mark.parametrize(
    ("first", "second"),
    [([1.0] * 3, [1.0] * 3), ([], []), ([1.0, 1.0, 1.0, 0.0], [1.0] * 4), ([1.0] * 4, [1.0, float("nan"), 1.0, 1.0])],
)
def test_without_enough_rounds_there_is_no_ratio(first: list[float], second: list[float]) -> None:
    ratio = Ratio.of(first, second)
    assert not ratio.is_known
    assert not ratio.differs
    assert np.isnan([ratio.low, ratio.high, ratio.order]).all()
