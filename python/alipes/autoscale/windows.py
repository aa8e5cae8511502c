"""What Knative's scaler remembers: means over the last seconds, and the largest decision of the last ones."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

__all__ = ["AverageWindow", "MaximumWindow"]

_DIGITS: Final = 1e6
"""Means are rounded to six digits, as Knative rounds them: a sum of many values has an error in the last ones."""


class AverageWindow:
    """The mean of a value over the last seconds.

    Seconds without a value count as 0. After a whole window without any value, the mean begins anew.

    Source: Knative's `pkg/autoscaler/aggregation/bucketing.go`, `TimedFloat64Buckets` of one second each.
    """

    def __init__(self, seconds: int) -> None:
        """An empty window of so many seconds."""
        self._values = [0.0] * seconds
        self._total = 0.0
        self._first: int | None = None
        self._last: int | None = None

    def record(self, second: int, value: float) -> None:
        """Adds a value of a second, which is not before the last one."""
        if self._last is None or self._first is None or second - self._last >= len(self._values):
            self._first = second
            self._total = 0.0
            self._values = [0.0] * len(self._values)
        else:
            for skipped in range(self._last + 1, second + 1):
                place = skipped % len(self._values)
                self._total -= self._values[place]
                self._values[place] = 0.0
        self._last = second
        self._values[second % len(self._values)] += value
        self._total += value

    def mean(self, now: int) -> float:
        """The mean at a second; 0 where no value came for a whole window."""
        if self._last is None or self._first is None or now - self._last >= len(self._values):
            return 0.0
        size = len(self._values)
        outdated = range(self._last + 1, now + 1)
        total = self._total
        for second in outdated:
            total -= self._values[second % size]
        return _rounded(total / min(self._last - self._first + 1, size - len(outdated)))


class MaximumWindow:
    """The largest decision of the last seconds, in steps of a tick.

    Source: Knative's `pkg/autoscaler/aggregation/max/window.go`.
    """

    def __init__(self, seconds: float, tick_s: int) -> None:
        """An empty window of so many seconds, with one decision for each tick."""
        self._ticks = math.ceil(seconds / tick_s)
        self._tick_s = tick_s
        self._falling: deque[tuple[int, int]] = deque()

    def record(self, now: int, value: int) -> int:
        """Adds a decision, and returns the largest one."""
        tick = now // self._tick_s
        while self._falling and value >= self._falling[-1][1]:
            self._falling.pop()
        while self._falling and tick - self._falling[0][0] >= self._ticks:
            self._falling.popleft()
        if self._falling and self._falling[-1][0] == tick:
            value = max(value, self._falling.pop()[1])
        self._falling.append((tick, value))
        return self._falling[0][1]


def _rounded(value: float) -> float:
    """Rounded as Go rounds: halves away from zero."""
    scaled = value * _DIGITS
    whole = math.trunc(scaled)
    if abs(scaled - whole) >= 0.5:
        whole += int(math.copysign(1, scaled))
    return whole / _DIGITS
