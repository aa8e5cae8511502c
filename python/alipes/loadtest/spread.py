"""How far a figure may lie from the one that was seen, from the windows that it was seen in."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

__all__ = ["Interval", "is_settled", "t_95"]

_T_95: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t for 95 %, two sides, for 1, 2, … degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and the bounds that hold it in 95 of 100 runs, if windows do not depend on each other."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """The interval of windows' values; without bounds (NaN) for a single one."""
        mean = statistics.fmean(values)
        if len(values) < 2:
            return cls(mean, math.nan, math.nan)
        half = t_95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
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
