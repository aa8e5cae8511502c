"""How often each time was seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Histogram"]

_Counts: TypeAlias = npt.NDArray[np.uint64]


def _none() -> _Counts:
    return np.array([], np.uint64)


@dataclass(frozen=True)
class Histogram:
    """Times, each within 0.1 % of what was measured, and how often each was seen.

    Attributes:
        times_ns: Ascending, in nanoseconds; shape `[N]`.
        counts: How often each was seen; shape `[N]`.
    """

    times_ns: _Counts = field(default_factory=_none, repr=False)
    counts: _Counts = field(default_factory=_none, repr=False)

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        """All that the parts saw."""
        known = [part for part in parts if part.count]
        if not known:
            return cls()
        times, places = np.unique(np.concatenate([part.times_ns for part in known]), return_inverse=True)
        counts = np.zeros(len(times), np.uint64)
        np.add.at(counts, places, np.concatenate([part.counts for part in known]))
        return cls(times, counts)

    @property
    def count(self) -> int:
        """How many times were seen."""
        return int(self.counts.sum())

    @property
    def mean_ms(self) -> float:
        """Their mean in milliseconds; NaN without any."""
        return float(np.average(self.times_ns, weights=self.counts)) / 1e6 if self.count else float("nan")

    @property
    def max_ms(self) -> float:
        """The longest in milliseconds; NaN without any."""
        return float(self.times_ns[-1]) / 1e6 if self.count else float("nan")

    @property
    def std_ms(self) -> float:
        """Their standard deviation in milliseconds; NaN without any."""
        if not self.count:
            return float("nan")
        deviations = (self.times_ns / 1e6 - self.mean_ms) ** 2
        return float(np.sqrt(np.average(deviations, weights=self.counts)))

    def percentile_ms(self, percent: float) -> float:
        """The time in milliseconds that this percentage did not exceed; NaN without any."""
        if not self.count:
            return float("nan")
        reached = np.cumsum(self.counts)
        place = np.searchsorted(reached, np.ceil(percent / 100 * self.count).clip(1), side="left")
        return float(self.times_ns[place]) / 1e6
