"""Knative's scaler (KPA): each decision that it takes, from the same values.

Source: Knative serving 0.48.1, `pkg/autoscaler/scaling/autoscaler.go` `Scale`, and for the last replica
`pkg/reconciler/autoscaling/kpa/scaler.go` `handleScaleToZero`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from alipes.autoscale.knative_settings import KnativeSettings
from alipes.autoscale.scaler import TICK_S, ServiceState
from alipes.autoscale.windows import AverageWindow, MaximumWindow

__all__ = ["KnativeDecision", "KnativeScaler"]


@dataclass(frozen=True, slots=True)
class KnativeDecision:
    """What Knative decides at a tick.

    Attributes:
        desired: Replicas that the load asks for.
        bounded: Replicas within the bounds of the settings.
        excess_burst_capacity: Room for a burst; below 0, requests pass the activator.
    """

    desired: int
    bounded: int
    excess_burst_capacity: int


class KnativeScaler:
    """Knative's scaler of one service."""

    def __init__(self, settings: KnativeSettings, ready: int | None = None, now: int = 0) -> None:
        """Takes its settings.

        Args:
            settings: Of the service and its cluster.
            ready: Replicas that serve already; with more than one, Knative begins in panic. `None` begins as a new
                service does.
            now: The second in which it begins.
        """
        self._settings = settings
        self._stable = AverageWindow(settings.window_s)
        self._panic = AverageWindow(settings.panic_window_s)
        delay_s = settings.scale_down_delay_s
        self._delay = MaximumWindow(delay_s, TICK_S) if delay_s > 0 else None
        self._panic_since = now if ready is not None and ready > 1 else None
        self._most_in_panic = ready or 0
        self._last_replica = _LastReplica(settings)

    @property
    def first(self) -> int:
        """Replicas at the beginning."""
        return max(self._settings.initial_scale, self._settings.least)

    def observe(self, second: int, state: ServiceState) -> None:
        """Records what Knative counts. Without replicas and requests nobody reports any value."""
        if state.replicas or state.in_service:
            self.record(second, state.arrived if self._settings.metric == "rps" else state.in_service)

    def record(self, second: int, value: float) -> None:
        """Records a value of the second."""
        self._stable.record(second, value)
        self._panic.record(second, value)

    def decide(self, second: int, state: ServiceState) -> int:
        """How many replicas there are to be: the decision of the tick, and the rules for the last replica."""
        decision = self.tick(second, state.ready)
        return self._last_replica.decide(second, decision, state)

    def tick(self, now: int, ready: int) -> KnativeDecision:
        """The decision of a tick."""
        settings = self._settings
        stable, panic = self._stable.mean(now), self._panic.mean(now)
        present = max(1, ready)
        for_stable, for_panic = math.ceil(stable / settings.aim), math.ceil(panic / settings.aim)
        is_over = for_panic / present >= settings.panic_threshold
        self._update_panic(now, is_over=is_over)
        desired = self._limited(for_stable, present)
        if self._panic_since is not None:
            self._most_in_panic = max(self._most_in_panic, desired, self._limited(for_panic, present))
            desired = self._most_in_panic
        if self._delay is not None:
            desired = self._delay.record(now, desired)
        bounded = max(desired, settings.least)
        bounded = min(bounded, settings.most) if settings.most else bounded
        return KnativeDecision(desired, bounded, self._excess_burst_capacity(ready, panic))

    def _limited(self, wanted: int, present: int) -> int:
        """As many replicas as one decision may make of those that are ready."""
        settings = self._settings
        fewest = math.floor(present / settings.max_scale_down_rate)
        limited = min(max(wanted, fewest), math.ceil(settings.max_scale_up_rate * present))
        is_active = settings.activation_scale > 1 and wanted > 0
        return max(limited, settings.activation_scale) if is_active else limited

    def _update_panic(self, now: int, *, is_over: bool) -> None:
        if is_over:
            self._panic_since = now
        elif self._panic_since is not None and self._panic_since + self._settings.window_s < now:
            self._panic_since = None
            self._most_in_panic = 0

    def _excess_burst_capacity(self, ready: int, panic: float) -> int:
        capacity = self._settings.target_burst_capacity
        if capacity == 0:
            return 0
        return -1 if capacity < 0 else math.floor(ready * self._settings.total - capacity - panic)


class _LastReplica:
    """When the last replica may go: once requests would be caught without it."""

    def __init__(self, settings: KnativeSettings) -> None:
        self._settings = settings
        self._active_since: int | None = None
        self._idle_since: int | None = None
        self._proxied_since: int | None = None

    def decide(self, now: int, decision: KnativeDecision, state: ServiceState) -> int:
        """The replicas that there are to be."""
        wanted = decision.bounded
        if decision.excess_burst_capacity >= 0 and wanted:
            self._proxied_since = None
        elif self._proxied_since is None:
            self._proxied_since = now
        if wanted:
            self._idle_since = None
            if state.ready and self._active_since is None:
                self._active_since = now
            return wanted
        return self._without_need(now, state)

    def _without_need(self, now: int, state: ServiceState) -> int:
        if not self._settings.scale_to_zero:
            return 1
        if not state.replicas:
            return 0
        if self._active_since is None:
            if not state.ready:
                return state.replicas  # it is being activated
            self._active_since = now
        if now - self._active_since < self._settings.window_s:
            return 1
        self._idle_since = now if self._idle_since is None else self._idle_since
        if self._may_go(now):
            self._active_since = self._idle_since = None
            return 0
        return state.replicas

    def _may_go(self, now: int) -> bool:
        grace_s, retention_s = self._settings.grace_s, self._settings.retention_s
        idle_s = now - (now if self._idle_since is None else self._idle_since)
        proxied_s = now - (now if self._proxied_since is None else self._proxied_since)
        return idle_s >= max(grace_s, retention_s) or (idle_s >= retention_s and proxied_s >= grace_s)
