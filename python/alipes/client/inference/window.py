"""The limit on requests in flight: a further send waits until some are answered."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from alipes.errors import DeadlineExceeded

__all__ = ["Window"]

_LOG: Final = logging.getLogger("alipes.client")

_NOTICE_S: Final = 30.0
"""A window that stays full for so long is logged: its requests may never be answered."""


class Window:
    """Counts the requests under way."""

    def __init__(self, most: int | None) -> None:
        """No more than `most` at any time; `None` is no limit."""
        self._most = most
        self._count = 0
        self._changed = threading.Condition(threading.Lock())

    @property
    def count(self) -> int:
        """Requests under way now."""
        return self._count

    def enter(self, *, wait: bool = True) -> None:
        """Enters as soon as there is room; at once with `wait=False`."""
        with self._changed:
            if wait and self._most is not None:
                while self._count >= self._most:
                    if not self._changed.wait(_NOTICE_S):
                        _LOG.warning(
                            "%d requests are in flight, and none was answered for %g s: "
                            "are there more sequences than the server has slots for?",
                            self._count,
                            _NOTICE_S,
                        )
            self._count += 1

    def leave(self, count: int) -> None:
        """Gives places back."""
        with self._changed:
            self._count -= count
            self._changed.notify_all()

    def emptied(self) -> Window:
        """A window of the same size without requests; sends that wait for this one go on."""
        with self._changed:
            self._count = 0
            self._changed.notify_all()
        return Window(self._most)

    def wait_empty(self, timeout_s: float | None) -> None:
        """Returns once nothing is under way.

        Raises:
            DeadlineExceeded: If the time is up before.
        """
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while self._count:
                left_s = None if deadline_s is None else deadline_s - time.monotonic()
                if left_s is not None and left_s <= 0:
                    raise DeadlineExceeded(f"{self._count} requests are not answered after {timeout_s:g} s")
                self._changed.wait(left_s)
