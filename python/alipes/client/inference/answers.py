"""The queue of answers, read without waiting, with a time-out, or from an event loop."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

__all__ = ["Answers", "Raised"]

_PAUSE_S: Final = 0.0005
"""The sleep of repeated calls on an empty queue: the thread that fills it needs the interpreter."""

_OVERHEAD_BYTES: Final = 512
"""About what an answer takes beside the elements of its arrays."""

_NOTHING: Final = object()


class Raised:
    """An exception in the place of an answer; reading it raises it.

    Attributes:
        error: The exception.
        by_callback: Whether the callback raised it, rather than the request failed.
        reported: Whether it was logged as one that nobody has read.
    """

    __slots__ = ("by_callback", "error", "reported")

    def __init__(self, error: BaseException, *, by_callback: bool = False) -> None:
        """Takes the exception."""
        self.error = error
        self.by_callback = by_callback
        self.reported = False


class Answers:
    """A queue of answers and exceptions."""

    def __init__(self) -> None:
        """Starts empty."""
        # Each with its size when it came: an answer is the caller's, who may change it.
        self._waiting: deque[tuple[Any, int]] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._takers = 0
        self._listeners: list[Callable[[], None]] = []
        self._polled_empty = False
        # One thread puts, any may take.
        self._put_bytes = self._read_bytes = 0
        self._taking = threading.Lock()

    def __len__(self) -> int:
        """Number of answers in the queue."""
        return len(self._waiting)

    @property
    def unread_bytes(self) -> int:
        """About what the answers in the queue take, in bytes."""
        return self._put_bytes - self._read_bytes

    def failures(self) -> list[Raised]:
        """The exceptions in the queue."""
        return [answer for answer, _ in self._waiting.copy() if isinstance(answer, Raised)]

    def put(self, answer: Any) -> None:
        """Adds an answer."""
        size = _bytes_of(answer)
        self._put_bytes += size
        self._waiting.append((answer, size))
        if self._takers:
            self.wake()

    def wake(self) -> None:
        """Wakes all waiting readers."""
        with self._changed:
            self._changed.notify_all()
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def take(self) -> Any:
        """The next answer, or `None`; an exception is raised. Repeated calls on an empty queue sleep for a moment."""
        answer = self._pop()
        if answer is _NOTHING:
            if self._polled_empty:
                return self.wait(_PAUSE_S)
            self._polled_empty = True
            return None
        self._polled_empty = False
        return _opened(answer)

    def take_all(self, first: Iterable[Any] = ()) -> list[Any]:
        """What the caller has `first`, and everything that is there.

        What came before an exception is given first, the exception at the next call.
        """
        answers = list(first)
        while (answer := self._pop(raised=not answers)) is not _NOTHING:
            answers.append(_opened(answer))
        if not answers and self.take_nothing():
            return self.take_all()
        return answers

    def take_nothing(self) -> bool:
        """Sleeps a little where a caller asks in vain again; returns whether something came."""
        if not self._polled_empty:
            self._polled_empty = True
            return False
        return self._wait_for_one(_PAUSE_S)

    def wait(self, timeout_s: float | None, until: Callable[[], bool] = lambda: False) -> Any:
        """The next answer, or `None` after the time-out or once `until` holds, which is checked on `wake`."""
        if self._wait_for_one(timeout_s, until):
            answer = self._pop()
            return None if answer is _NOTHING else _opened(answer)  # another thread may have been quicker
        return None

    def request(self) -> None:
        """Notes that a request was sent: looking once more is not in vain then."""
        self._polled_empty = False

    def clear(self) -> None:
        """Throws everything away."""
        while self._pop() is not _NOTHING:
            pass

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls `listener` for each answer, from the thread that brings it."""
        with self._changed:
            self._listeners.append(listener)
            self._takers += 1

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Ends that."""
        with self._changed:
            self._listeners.remove(listener)
            self._takers -= 1

    def _pop(self, *, raised: bool = True) -> Any:
        """The next answer, or `_NOTHING`; an exception stays where `raised` is false."""
        with self._taking:
            if not self._waiting or (isinstance(self._waiting[0][0], Raised) and not raised):
                return _NOTHING
            answer, size = self._waiting.popleft()
            self._read_bytes += size
        return answer

    def _wait_for_one(self, timeout_s: float | None, until: Callable[[], bool] = lambda: False) -> bool:
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            self._takers += 1
            try:
                while not self._waiting and not until():
                    left_s = None if deadline_s is None else deadline_s - time.monotonic()
                    if left_s is not None and left_s <= 0:
                        break
                    self._changed.wait(left_s)
            finally:
                self._takers -= 1
            return bool(self._waiting)


def _opened(answer: Any) -> Any:
    if isinstance(answer, Raised):
        raise answer.error
    return answer


def _bytes_of(answer: Any) -> int:
    """About what an answer takes: its arrays, alone or by name, in front of the ids of its request."""
    y = answer[0] if type(answer) is tuple and answer else answer
    arrays = y.values() if isinstance(y, dict) else (y,)
    return _OVERHEAD_BYTES + sum(one.nbytes for one in arrays if isinstance(one, np.ndarray))
