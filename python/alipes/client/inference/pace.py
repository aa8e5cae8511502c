"""The pace of requests: even, and never faster than the rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Pace"]


class Pace:
    """Gives each request its moment. A late request is not followed by a burst."""

    def __init__(
        self,
        per_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Takes the requests per second."""
        if not per_s > 0:
            raise ValueError(f"rate must be a positive number of requests per second, got {per_s}")
        self._gap_s = 1 / per_s
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._next_s = clock()

    def wait(self) -> None:
        """Returns when the next request may be sent."""
        with self._lock:
            now_s = self._clock()
            due_s = max(self._next_s, now_s - self._gap_s)
            self._next_s = due_s + self._gap_s
        if due_s > now_s:
            self._sleep(due_s - now_s)
