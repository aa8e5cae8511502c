"""The figures of a simulated day."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import numpy as np

from alipes.autoscale.simulation import SimulatedDay

__all__ = ["WAITED_S", "DayFigures"]

WAITED_S: Final = 0.1
"""A request that waits longer for a replica is counted as one that waited."""
_HOUR_S: Final = 3600


@dataclass(frozen=True)
class DayFigures:
    """What a day was like for clients, and what it cost.

    Attributes:
        requests: Requests that came.
        p50_s: Median of their latency.
        p99_s: 99th percentile of their latency; infinite where so many had no answer.
        waited: Requests that waited longer than `WAITED_S` for a replica.
        unanswered: Requests that no replica took in the day and the hour after it.
        cold_starts: How often there was no replica when a request came.
        started: Replicas that were started.
        most_replicas: Most replicas at a time.
        replica_hours: Hours of replicas, from their order on.
        cost: What they cost; `None` where no price was set.
    """

    requests: float
    p50_s: float
    p99_s: float
    waited: float
    unanswered: float
    cold_starts: int
    started: int
    most_replicas: int
    replica_hours: float
    cost: float | None = None

    @classmethod
    def of(cls, day: SimulatedDay, hour_price: float | None = None) -> Self:
        """The figures of a day.

        Args:
            day: The day.
            hour_price: What a replica costs for an hour.
        """
        weights = np.broadcast_to(day.arrived[:, None] / day.waits_s.shape[1], day.waits_s.shape)
        hours = float(day.replicas.sum()) / _HOUR_S
        return cls(
            requests=float(day.arrived.sum()),
            p50_s=_percentile(day.latencies_s, weights, 0.5),
            p99_s=_percentile(day.latencies_s, weights, 0.99),
            waited=float(weights[day.waits_s > WAITED_S].sum()),
            unanswered=float(weights[np.isinf(day.waits_s)].sum()),
            cold_starts=day.cold_starts,
            started=day.started,
            most_replicas=int(day.replicas.max(initial=0)),
            replica_hours=hours,
            cost=None if hour_price is None else hours * hour_price,
        )

    def to_document(self) -> Mapping[str, Any]:
        """For JSON, which has no infinity: what is none is null."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def _percentile(values: np.ndarray[Any, Any], weights: np.ndarray[Any, Any], share: float) -> float:
    """The value that so large a share of the weight does not exceed; 0 where there is no weight."""
    present = weights.ravel() > 0
    values, weights = values.ravel()[present], weights.ravel()[present]
    if not len(values):
        return 0.0
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    place = int(np.searchsorted(reached, share * reached[-1] * (1 - 1e-12)))
    return float(values[order][min(place, len(values) - 1)])
