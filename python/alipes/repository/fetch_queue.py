"""Fetches of models, some at a time: one that takes long holds up no other."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

__all__ = ["FetchQueue"]

AT_ONCE: Final = 8
"""Downloads side by side: enough to fill a connection, few enough for the place that they come from."""
SLOW_S: Final = 5.0
"""After this time a fetch no longer counts among those: what it waits for is not what the others wait for."""
MOST: Final = 64
"""Threads at most, however many are slow."""
_CLOSE_S: Final = 2.0
"""How long the end waits for fetches that were given up: a disk that is gone keeps its thread for ever."""

Fetch = Callable[[], None]


class FetchQueue:
    """Runs fetches on threads of its own, in the order in which they came."""

    def __init__(self, at_once: int = AT_ONCE, slow_s: float = SLOW_S, most: int = MOST) -> None:
        """Starts nothing.

        Args:
            at_once: How many run side by side that are not slow.
            slow_s: After how many seconds one is slow.
            most: How many run side by side at most.
        """
        self._at_once = at_once
        self._slow_s = slow_s
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[Fetch] = deque()
        self._begun_at: dict[threading.Thread, float] = {}
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._ended = 0
        self._is_over = False

    def submit(self, fetch: Fetch) -> None:
        """Has a fetch run, unless the queue was stopped. It reports its own failures."""
        with self._changed:
            if not self._is_over:
                self._waiting.append(fetch)
                self._start_idle()
                self._changed.notify()

    def wait(self, longest_gap_s: float) -> None:
        """Returns once all fetches have ended, or none has for so long."""
        with self._changed:
            ended, until = self._ended, time.monotonic() + longest_gap_s
            while (self._waiting or self._begun_at) and not self._is_over:
                left_s = until - time.monotonic()
                if left_s <= 0:
                    return
                self._changed.wait(left_s)
                if self._ended != ended:
                    ended, until = self._ended, time.monotonic() + longest_gap_s

    def stop(self) -> None:
        """Drops what has not begun."""
        with self._changed:
            self._is_over = True
            self._waiting.clear()
            self._changed.notify_all()

    def close(self) -> None:
        """Stops, and waits a moment for what has begun."""
        self.stop()
        until = time.monotonic() + _CLOSE_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _start_idle(self) -> None:
        """Keeps one thread that waits: it sees when others become slow."""
        if self._waiting and not self._idle and len(self._threads) < self._most:
            self._idle += 1
            thread = threading.Thread(target=self._work, name=f"alipes-fetch-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while (fetch := self._take()) is not None:
            try:
                fetch()
            finally:
                with self._changed:
                    del self._begun_at[threading.current_thread()]
                    self._idle += 1
                    self._ended += 1
                    self._changed.notify_all()

    def _take(self) -> Fetch | None:
        with self._changed:
            while not self._is_over:
                pause_s = self._until_next(time.monotonic())
                if self._waiting and pause_s == 0:
                    self._idle -= 1
                    self._begun_at[threading.current_thread()] = time.monotonic()
                    fetch = self._waiting.popleft()
                    self._start_idle()
                    return fetch
                self._changed.wait(pause_s if self._waiting else None)
            return None

    def _until_next(self, now: float) -> float:
        """Seconds until another fetch may begin: until so many of those that run are slow."""
        quick = sorted(begun for begun in self._begun_at.values() if now < begun + self._slow_s)
        surplus = len(quick) - self._at_once
        return 0 if surplus < 0 else quick[surplus] + self._slow_s - now
