"""A day of requests through replicas that a scaler orders: each second once, without any chance.

Requests are a fluid. Those of a second come evenly spread, replicas take them in the order in which they came, and each
replica has an equal part. What waits by chance within a second is not seen, and neither is a queue that is full.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from alipes.autoscale.curve import ServiceCurve
from alipes.autoscale.scaler import TICK_S, Scaler, ServiceState

__all__ = ["Replica", "SimulatedDay", "simulate"]

_LONGEST_TAIL_S: Final = 3600
"""After the last second of the day, for requests that still wait."""
_NO_WAIT_S: Final = 1e-6
_COHORTS: Final = 4
"""Groups that the requests of a second are followed in."""


@dataclass(frozen=True)
class Replica:
    """What one replica is.

    Attributes:
        start_up_s: From its order until it serves.
        curve: What it answers.
        concurrency: Most requests that it works on at a time.
    """

    start_up_s: float
    curve: ServiceCurve
    concurrency: int


@dataclass(frozen=True)
class SimulatedDay:
    """What became of a day. Arrays have an element for each second.

    Attributes:
        arrived: Requests that came.
        ready: Replicas that served.
        replicas: Replicas that served or started: those that cost.
        started: Replicas that were ordered.
        cold_starts: How often a replica was ordered for requests that had none.
        waits_s: How long groups of requests waited for a replica; shape `[seconds, groups]`, infinite where none came.
        latencies_s: How long they took, with their execution; shaped alike.
    """

    arrived: np.ndarray[Any, Any]
    ready: np.ndarray[Any, Any]
    replicas: np.ndarray[Any, Any]
    started: int
    cold_starts: int
    waits_s: np.ndarray[Any, Any]
    latencies_s: np.ndarray[Any, Any]


@dataclass
class _Replicas:
    """The replicas of a service."""

    start_up_s: float
    ready: int
    starting: deque[float] = field(default_factory=deque)
    started: int = 0

    def become_ready(self, second: float) -> None:
        while self.starting and self.starting[0] <= second:
            self.starting.popleft()
            self.ready += 1

    def scale(self, wanted: int, second: float) -> None:
        """Orders replicas, or gives some up: first those that do not serve yet, the newest first."""
        more = wanted - self.ready - len(self.starting)
        for _ in range(more):
            self.starting.append(second + self.start_up_s)
            self.started += 1
        for _ in range(-more):
            if self.starting:
                self.starting.pop()
            else:
                self.ready -= 1


@dataclass
class _Second:
    """One second of the queue.

    Attributes:
        served: Requests that replicas have begun.
        waiting: Requests that wait at its end.
        mean_waiting: The mean of those that wait.
        executed: The mean of those that are executed, of each replica.
        empty_after_s: When the queue of the second before was empty; 1 where it was not.
    """

    served: float
    waiting: float
    mean_waiting: float
    executed: float
    empty_after_s: float


def simulate(arrived: np.ndarray[Any, Any], replica: Replica, scaler: Scaler) -> SimulatedDay:
    """Replays a day.

    Args:
        arrived: Requests in each second.
        replica: What one replica is.
        scaler: What decides how many there are.

    Returns:
        What became of it. The same day and the same scaler give the same answer.
    """
    replicas = _Replicas(replica.start_up_s, scaler.first)
    seconds: list[_Second] = []
    ready, paid = [], []
    cold_starts, waiting, second = 0, 0.0, 0
    while second < len(arrived) or (waiting > 1e-9 and second < len(arrived) + _LONGEST_TAIL_S):
        replicas.become_ready(second)
        came = float(arrived[second]) if second < len(arrived) else 0.0
        one = _second(waiting, came, replicas.ready, replica)
        waiting = one.waiting
        in_service = one.mean_waiting + one.executed * replicas.ready
        state = ServiceState(came, in_service, waiting, replicas.ready, len(replicas.starting))
        seconds.append(one)
        ready.append(replicas.ready)
        paid.append(state.replicas)
        scaler.observe(second, state)
        is_caught = state.replicas == 0 and waiting > 0  # whatever catches requests wakes the scaler at once
        if second % TICK_S == TICK_S - 1 or is_caught:
            before = replicas.started
            replicas.scale(scaler.decide(second, state), second + 1)
            cold_starts += is_caught and replicas.started > before
        second += 1
    day = len(arrived)
    waits_s, latencies_s = _latencies(arrived, seconds, replica)
    return SimulatedDay(
        arrived, np.array(ready[:day]), np.array(paid[:day]), replicas.started, cold_starts, waits_s, latencies_s
    )


def _second(before: float, arrived: float, ready: int, replica: Replica) -> _Second:
    """A second of the queue: what was in it, what comes, what is served."""
    capacity = ready * replica.curve.rate(replica.concurrency)
    total = before + arrived
    if total > capacity:
        waiting = total - capacity
        return _Second(capacity, waiting, (before + waiting) / 2, replica.concurrency if ready else 0.0, 1.0)
    if total == 0:
        return _Second(0.0, 0.0, 0.0, 0.0, 0.0)
    empty_after_s = before / (capacity - arrived) if before else 0.0
    executed = replica.curve.needed(arrived / ready)
    executed += (replica.concurrency - executed) * empty_after_s
    return _Second(total, 0.0, before / 2 * empty_after_s, executed, empty_after_s)


def _latencies(
    arrived: np.ndarray[Any, Any], seconds: list[_Second], replica: Replica
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """How long the groups of each second's requests waited, and how long they took in all."""
    count = len(seconds)
    served = np.array([one.served for one in seconds])
    waiting = np.array([one.waiting for one in seconds])
    empty_after_s = np.array([one.empty_after_s for one in seconds])
    executed = np.array([one.executed for one in seconds])
    came = np.zeros(count)
    came[: len(arrived)] = arrived
    come, begun = np.concatenate([[0.0], np.cumsum(came)]), np.concatenate([[0.0], np.cumsum(served)])
    # Until a queue is empty it is served at full speed, and then as requests come.
    is_bent = (empty_after_s > 0) & (empty_after_s < 1) & (waiting == 0)
    bends_s = np.flatnonzero(is_bent) + empty_after_s[is_bent]
    bends = np.interp(bends_s, np.arange(count + 1), come)
    times_s = np.concatenate([np.arange(count + 1), bends_s])
    order = np.argsort(times_s, kind="stable")
    times_s, begun = times_s[order], np.concatenate([begun, bends])[order]
    parts = (np.arange(_COHORTS) + 0.5) / _COHORTS
    place = come[: len(arrived), None] + came[: len(arrived), None] * parts
    begin_s = _first_time(place.ravel(), begun, times_s).reshape(place.shape)
    waits_s = begin_s - (np.arange(len(arrived))[:, None] + parts)
    waits_s[waits_s < _NO_WAIT_S] = 0.0  # what is left of sums that are not exact
    # What replicas take in that are ready at the beginning of a second is executed in it.
    where = np.minimum(np.nan_to_num(begin_s, posinf=0.0).astype(int), count - 1)
    service_s = np.array([replica.curve.service_s(one) for one in executed])
    return waits_s, waits_s + service_s[where]


def _first_time(
    places: np.ndarray[Any, Any], begun: np.ndarray[Any, Any], times_s: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """When the request of a place was begun; infinite where it was not."""
    right = np.searchsorted(begun, places - 1e-9, side="left")
    known = right < len(begun)
    right = np.clip(right, 1, len(begun) - 1)
    low, high = begun[right - 1], begun[right]
    share = np.divide(places - low, high - low, out=np.zeros(len(places)), where=high > low)
    found = times_s[right - 1] + np.clip(share, 0.0, 1.0) * (times_s[right] - times_s[right - 1])
    return np.where(known, found, np.inf)
