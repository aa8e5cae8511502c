"""How many times one measure is another, from rounds in which both were taken in turn."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from alipes.loadtest.spread import t_95

__all__ = ["MIN_ROUNDS", "Ratio"]

MIN_ROUNDS: Final = 4
"""Two of each order: with fewer there is no spread to see."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio, and the bounds that hold it in 95 of 100 comparisons; all NaN where it cannot be said.

    Attributes:
        value: The geometric mean of the rounds' ratios.
        low: Its lower bound.
        high: Its upper bound.
        first: The geometric mean of the first one's values.
        second: The geometric mean of the second one's.
        order: How many times the measure of who is second in a round is that of who is first, apart from the ratio.
    """

    value: float
    low: float
    high: float
    first: float
    second: float
    order: float

    @classmethod
    def of(cls, first: Sequence[float], second: Sequence[float]) -> Self:
        """The ratio of the second to the first.

        Args:
            first: One value for each round; in rounds 0, 2, … this side was measured first.
            second: Likewise; in rounds 1, 3, … this side was measured first.

        The rounds of each order have a mean of their own, so that whatever being second costs is in neither the ratio
        nor its spread. Source: the crossover design of two treatments and two periods.
        """
        if min(len(first), len(second)) < MIN_ROUNDS or not all(_has_log(value) for value in (*first, *second)):
            return cls(*[math.nan] * 6)
        logs = [math.log(later / earlier) for earlier, later in zip(first, second, strict=True)]
        orders = (logs[0::2], logs[1::2])
        means = [statistics.fmean(part) for part in orders]
        freedom = len(logs) - 2
        squares = sum((value - mean) ** 2 for part, mean in zip(orders, means, strict=True) for value in part)
        error = math.sqrt(squares / freedom * sum(1 / len(part) for part in orders)) / 2
        middle, half = statistics.fmean(means), t_95(freedom) * error
        bounds = (middle, middle - half, middle + half)
        sides = (statistics.fmean(map(math.log, first)), statistics.fmean(map(math.log, second)))
        return cls(*map(math.exp, (*bounds, *sides, (means[0] - means[1]) / 2)))

    @property
    def is_known(self) -> bool:
        """Whether it can be said."""
        return not math.isnan(self.value)

    @property
    def differs(self) -> bool:
        """Whether its bounds exclude 1."""
        return self.is_known and not self.low <= 1 <= self.high

    @property
    def order_matters(self) -> bool:
        """Whether being second in a round changes the measure by more than chance does."""
        return self.is_known and abs(math.log(self.order)) > math.log(self.high / self.low) / 2


def _has_log(value: float) -> bool:
    return math.isfinite(value) and value > 0
