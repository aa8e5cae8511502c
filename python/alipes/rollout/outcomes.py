"""What became of the requests of one version while the weights were the same, as the server counts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outcomes", "TimeCounts"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimeCounts:
    """How often times were about so long.

    Attributes:
        times_us: The times in microseconds, ascending, each value once.
        counts: How often each of them was seen.
    """

    times_us: Floats = field(default_factory=lambda: np.zeros(0))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def read(cls, pairs: Sequence[Sequence[int]]) -> TimeCounts:
        """Reads pairs of a time in microseconds and its count, ascending."""
        return cls(np.array([time for time, _ in pairs], np.float64), np.array([count for _, count in pairs], np.int64))

    @property
    def total(self) -> int:
        """How many times were counted."""
        return int(self.counts.sum())

    def at(self, rank: float) -> float:
        """The time in microseconds that has this rank, of all in ascending order, from 0."""
        place = int(np.searchsorted(np.cumsum(self.counts), rank, side="right"))
        return float(self.times_us[min(place, len(self.times_us) - 1)])


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes of a version's requests.

    Attributes:
        answered: Requests that were answered.
        failed: Requests that failed by no fault of their callers.
        latency: Times from a request to its first response, of all that were answered.
        samples: One number of each of the newest answers, by output; of several responses, of the first.
        interval: The mean time between two responses, of requests that had several.
    """

    answered: int = 0
    failed: int = 0
    latency: TimeCounts = field(default_factory=TimeCounts)
    samples: Mapping[str, Floats] = field(default_factory=dict)
    interval: TimeCounts = field(default_factory=TimeCounts)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Outcomes:
        """Reads what the server says of one version."""
        return cls(
            answered=document["answered"],
            failed=document["failed"],
            latency=TimeCounts.read(document["latency_us"]),
            samples={name: np.array(values, np.float64) for name, values in document["samples"].items()},
            interval=TimeCounts.read(document.get("response_interval_us", ())),
        )

    @property
    def requests(self) -> int:
        """Requests that were answered or failed."""
        return self.answered + self.failed
