"""What became of the requests of one version while the weights were the same, as the server counts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outcomes"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes of a version's requests.

    Attributes:
        answered: Requests that were answered.
        failed: Requests that failed by no fault of their callers.
        latencies_us: Latencies of answers in microseconds, ascending, each value once.
        counts: How many answers took about so long, for each of them.
        samples: One number of each of the newest answers, by output.
    """

    answered: int = 0
    failed: int = 0
    latencies_us: Floats = field(default_factory=lambda: np.zeros(0))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    samples: Mapping[str, Floats] = field(default_factory=dict)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Outcomes:
        """Reads what the server says of one version."""
        latency: Sequence[Sequence[int]] = document["latency_us"]
        return cls(
            answered=document["answered"],
            failed=document["failed"],
            latencies_us=np.array([time for time, _ in latency], np.float64),
            counts=np.array([count for _, count in latency], np.int64),
            samples={name: np.array(values, np.float64) for name, values in document["samples"].items()},
        )

    @property
    def requests(self) -> int:
        """Requests that were answered or failed."""
        return self.answered + self.failed

    def latency_at(self, rank: float) -> float:
        """The latency in microseconds of the answer with this rank, of all in ascending order, from 0."""
        place = int(np.searchsorted(np.cumsum(self.counts), rank, side="right"))
        return float(self.latencies_us[min(place, len(self.latencies_us) - 1)])
