"""A scaler that knows how long a replica takes to start, and how much one answers.

Knative looks back over the same minute whatever a start costs. This scaler looks ahead by as long as a start takes,
since what is ordered now serves then. It counts what will wait by then, and it gives up replicas the later, the longer
they take to come back.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

from alipes.autoscale.curve import ServiceCurve
from alipes.autoscale.scaler import TICK_S, ServiceState
from alipes.autoscale.windows import MaximumWindow

__all__ = ["StartupAwareScaler", "StartupAwareSettings"]

_SUDDEN_S: Final = 6
"""Seconds over which a sudden rise is seen: those of Knative's panic window."""


@dataclass(frozen=True, kw_only=True)
class StartupAwareSettings:
    """What the scaler goes by.

    Attributes:
        start_up_s: From the order of a replica until it serves, as it was measured.
        curve: What one replica answers.
        concurrency: Most requests that a replica works on at a time.
        utilization: The share of a replica's rate that is planned with; the rest is for what nobody foresees.
        least: Fewest replicas.
        most: Most replicas; 0 is no limit.
        initial_scale: Replicas at the beginning.
    """

    start_up_s: float
    curve: ServiceCurve
    concurrency: int
    utilization: float = 0.7
    least: int = 0
    most: int = 0
    initial_scale: int = 1

    @property
    def rate(self) -> float:
        """Requests per second of one replica at its limit."""
        return self.curve.rate(self.concurrency)

    @property
    def trend_s(self) -> int:
        """Over how many seconds the trend of the load is measured: a longer look ahead takes a longer look back."""
        return round(_bounded(2 * self.start_up_s, 10, 180))

    @property
    def keep_s(self) -> int:
        """For how many seconds fewer replicas have to be enough before there are fewer."""
        return round(_bounded(3 * self.start_up_s, 20, 600))

    @property
    def idle_s(self) -> int:
        """For how many seconds no request may come before the last replica goes."""
        return round(_bounded(6 * self.start_up_s, 20, 1800))


class StartupAwareScaler:
    """The scaler of one service."""

    def __init__(self, settings: StartupAwareSettings) -> None:
        """Takes its settings."""
        self._settings = settings
        self._arrivals: deque[float] = deque(maxlen=settings.trend_s)
        # A short lull costs no start, and what starts for a backlog is not given up before it serves.
        self._load = MaximumWindow(settings.keep_s, TICK_S)
        self._backlog = MaximumWindow(settings.start_up_s + TICK_S, TICK_S)
        self._last_request = 0

    @property
    def first(self) -> int:
        """Replicas at the beginning."""
        return max(self._settings.initial_scale, self._settings.least)

    def observe(self, second: int, state: ServiceState) -> None:
        """Sees a second."""
        self._arrivals.append(state.arrived)
        if state.in_service:
            self._last_request = second

    def decide(self, second: int, state: ServiceState) -> int:
        """How many replicas there are to be."""
        settings = self._settings
        ahead_s = settings.start_up_s + TICK_S
        level, slope = self._trend()
        then = max(level, level + slope * ahead_s)
        needed = self._load.record(second, _whole(then / (settings.rate * settings.utilization)))
        needed = max(needed, self._backlog.record(second, self._for_backlog(state, level, then)))
        is_idle = second - self._last_request >= settings.idle_s
        if state.in_service or (state.replicas and not is_idle):
            needed = max(needed, 1)
        needed = max(needed, settings.least)
        return min(needed, settings.most) if settings.most else needed

    def _for_backlog(self, state: ServiceState, level: float, then: float) -> int:
        """Replicas for what will wait when one that is ordered now begins to serve, and is to be gone soon after."""
        if not state.waiting:
            return 0
        settings = self._settings
        ahead_s = settings.start_up_s + TICK_S
        # Replicas that start have a part of their time behind them: half of it, in the mean.
        open_s = ahead_s / 2 if state.starting else ahead_s
        late = state.waiting + (level + then) / 2 * open_s - state.ready * settings.rate * open_s
        return _whole((then + max(0.0, late) / max(ahead_s / 4, 4.0)) / settings.rate)

    def _trend(self) -> tuple[float, float]:
        """Requests per second now, and by how much they grow in a second; a growth that may be chance is none."""
        count = len(self._arrivals)
        mean = sum(self._arrivals) / count
        if count < 4:
            return mean, 0.0
        middle = (count - 1) / 2
        spread = count * (count * count - 1) / 12
        slope = sum((place - middle) * value for place, value in enumerate(self._arrivals)) / spread
        # Requests that come by chance have as large a variance as their mean is.
        chance = 2 * math.sqrt(max(mean, 1 / count) / spread)
        slope = slope - chance if slope > chance else slope + chance if slope < -chance else 0.0
        return max(0.0, mean + slope * middle, self._sudden()), slope

    def _sudden(self) -> float:
        """Requests per second of the last seconds, without what may be chance: a step is no trend."""
        last = list(self._arrivals)[-_SUDDEN_S:]
        mean = sum(last) / len(last)
        return mean - 2 * math.sqrt(mean / len(last))


def _whole(replicas: float) -> int:
    return math.ceil(replicas - 1e-9)


def _bounded(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
