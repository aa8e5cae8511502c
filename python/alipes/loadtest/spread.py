"""How far a figure may lie from the one that was seen, from the windows that it was seen in."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

__all__ = ["Interval", "is_settled", "t_95"]

_T_95: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t for 95 %, two sides, for 1, 2, … degrees of freedom."""

_MEDIAN_OF_CHANGES: Final = 2 * 0.4549
"""Median of the squared difference of two values with a variance of 1: twice that of chi-squared."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and the bounds that hold it in 95 of 100 runs, if windows do not depend on each other."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], earlier: Sequence[float] = ()) -> Self:
        """The interval of windows' values; without bounds (NaN) for a single one.

        Args:
            values: Those that it is about.
            earlier: Those of the windows before, which did not agree. Who stops at the first windows that agree has
                chosen them for their small spread: without these the bounds would hold the truth in 80 of 100 runs
                where windows differ by a tenth. Of their changes the median counts, so that a slow beginning does not.
        """
        mean = statistics.fmean(values)
        if len(values) < 2:
            return cls(mean, math.nan, math.nan)
        variance = statistics.variance(values)
        if earlier:
            changes = [(later - before) ** 2 for before, later in pairwise([*earlier, *values])]
            variance = max(variance, statistics.median(changes) / _MEDIAN_OF_CHANGES)
        half = t_95(len(values) - 1) * math.sqrt(variance / len(values))
        return cls(mean, mean - half, mean + half)

    @property
    def share(self) -> float:
        """Half its width as a share of the mean; NaN where there are no bounds."""
        return (self.high - self.low) / 2 / self.mean if self.mean else math.nan


def t_95(freedom: int) -> float:
    """Student's t for 95 %, two sides, for so many degrees of freedom, of which there is one at least."""
    return _T_95[freedom - 1] if freedom <= len(_T_95) else 1.96 + 2.4 / freedom


def is_settled(values: Sequence[float], within: float) -> bool:
    """Whether all values are above 0 and the largest exceeds the smallest by no more than this share."""
    return min(values) > 0 and max(values) <= min(values) * (1 + within)
