"""How many requests one replica answers, by how many it works on at a time: its service curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, Self

from alipes.errors import ConfigError

__all__ = ["ServiceCurve"]

_KNEE: Final = 0.9
"""The share of the largest rate from which on more requests at a time bring little but latency."""


@dataclass(frozen=True)
class ServiceCurve:
    """The rate of one replica by its concurrency; between two points it is a straight line.

    Attributes:
        concurrency: Requests at a time, ascending.
        rates: Requests per second that are answered then.
        p99_ms: 99th percentile of the latency then, where it was measured.
    """

    concurrency: tuple[float, ...]
    rates: tuple[float, ...]
    p99_ms: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Checks the points.

        Raises:
            ConfigError: If there is none, or they do not ascend.
        """
        if not self.concurrency or len(self.concurrency) != len(self.rates):
            raise ConfigError("a service curve takes a rate for each concurrency, and one at least")
        if any(after <= before for before, after in pairwise((0.0, *self.concurrency))) or min(self.rates) <= 0:
            raise ConfigError("a service curve takes concurrencies that ascend, and rates above 0")

    @classmethod
    def of_service_time(cls, seconds: float, at_a_time: int) -> Self:
        """A replica that takes as long for each request, with up to so many at a time."""
        points = dict.fromkeys((1, at_a_time))
        return cls(tuple(map(float, points)), tuple(count / seconds for count in points))

    @property
    def most(self) -> float:
        """The largest rate."""
        return max(self.rates)

    @property
    def knee(self) -> int:
        """The smallest measured concurrency with most of the largest rate: more of it brings little but latency."""
        return next(
            round(count) for count, rate in zip(self.concurrency, self.rates, strict=True) if rate >= _KNEE * self.most
        )

    def rate(self, concurrency: float) -> float:
        """Requests per second with so many at a time; more than were measured are no faster."""
        return _interpolated(concurrency, (0.0, *self.concurrency), (0.0, *self.rates))

    def needed(self, rate: float) -> float:
        """How many requests are executed at a time where so many come per second; the most where they are too many."""
        rising = list(accumulate(self.rates, max))
        # Only where the rate grows does it say how many there are.
        steps = [place for place, value in enumerate(rising) if place == 0 or value > rising[place - 1]]
        rates, counts = [rising[place] for place in steps], [self.concurrency[place] for place in steps]
        return _interpolated(rate, (0.0, *rates), (0.0, *counts))

    def service_s(self, concurrency: float) -> float:
        """How long one request is executed, with so many at a time: by Little's law."""
        present = max(concurrency, self.concurrency[0])
        return present / self.rate(present)


def _interpolated(value: float, across: Sequence[float], up: Sequence[float]) -> float:
    for (left, low), (right, high) in pairwise(zip(across, up, strict=True)):
        if value <= right:
            return low + (high - low) * (value - left) / (right - left)
    return up[-1]
