"""Signals and events of other threads, as values that the main thread waits for.

Python runs signal handlers in the main thread only, and only between two of its instructions. So the main thread does
no work of its own: it sleeps on a pipe into which the interpreter writes the number of each signal, and other threads
write events of the server.
"""

from __future__ import annotations

import os
import select
import signal
import time
from enum import IntEnum
from types import FrameType, TracebackType
from typing import Self

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
RELOAD_SIGNAL = signal.SIGHUP
_HELD = (*STOP_SIGNALS, RELOAD_SIGNAL)


class Event(IntEnum):
    """The wake-up byte of another thread for the main thread; above every signal number, so both fit into one byte."""

    STARTED = 128
    STOPPED = 129
    IDLE = 130


class Wakeup:
    """Holds the signals to stop and to reload while it is entered; only the main thread may enter and wait."""

    def __init__(self) -> None:
        """Opens the pipe; signals keep their meaning until `__enter__`."""
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._old_handlers: dict[int, object] = {}
        self._old_fd = -1
        # Who has SIGHUP ignored, as `nohup` does, wants the server to outlive its terminal.
        self._ends_with_terminal = has_terminal() and signal.getsignal(RELOAD_SIGNAL) is not signal.SIG_IGN

    def __enter__(self) -> Self:
        """Takes the signals over."""
        self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in _HELD:
            self._old_handlers[number] = signal.signal(number, _ignore)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives the signals back."""
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what `signal.signal` returned before
        signal.set_wakeup_fd(self._old_fd, warn_on_full_buffer=False)
        os.close(self._read)
        os.close(self._write)

    def notify(self, event: Event) -> None:
        """Wakes the main thread; any thread may call it."""
        os.write(self._write, bytes([event]))

    def wait(self, timeout_s: float | None = None) -> tuple[int, ...]:
        """Signals and events since the last call, in their order; empty when the time is up.

        SIGHUP is the signal to reload, unless the process has lost its terminal: then SIGTERM stands in its place.

        Args:
            timeout_s: Longest wait; ``None`` waits without end.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._read], [], [], remaining)[0]:
                return ()
            seen = tuple(number for number in os.read(self._read, 512) if number in _HELD or number >= 128)
            if seen:  # other signals have handlers of their own
                return tuple(self._meant(number) for number in seen)

    def _meant(self, number: int) -> int:
        is_hung_up = number == RELOAD_SIGNAL and self._ends_with_terminal and not has_terminal()
        return signal.SIGTERM if is_hung_up else number


def has_terminal() -> bool:
    """Whether the terminal that this process was started from is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _ignore(number: int, frame: FrameType | None) -> None:
    """Does nothing: the number arrives through the pipe."""
