"""A process that runs a server, known by its id, or as a child."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from typing import Protocol

from alipes.local_ports.lifetime import GONE, started_at

__all__ = ["Apart", "Child", "Running"]


class Running(Protocol):
    """What can be done with a server's process."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def wait(self, timeout_s: float | None) -> bool:
        """Whether it has ended, as soon as it has or when the time is up."""

    def ended(self) -> str | None:
        """How it ended, in words; `None` while it runs."""

    def signal(self, number: int) -> None:
        """Sends a signal; one that has ended gets none."""


class Child:
    """A process that we started and whose exit status we get. One thread waits for it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Takes the process."""
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait(self, timeout_s: float | None) -> bool:
        """Whether it has ended, as soon as it has or when the time is up."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self._process.returncode is not None

    def ended(self) -> str | None:
        """How it ended, in words; `None` while it runs."""
        status = self._process.poll()
        return None if status is None else _in_words(status)

    def signal(self, number: int) -> None:
        """Sends a signal; one that has ended gets none."""
        self._process.send_signal(number)


class Apart:
    """A detached process: known by its id and its start time, since ids are reused."""

    def __init__(self, pid: int, started: int) -> None:
        """Takes its id and its start, which `started_at` gives."""
        self._pid = pid
        self._started = started

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._pid

    def wait(self, timeout_s: float | None) -> bool:
        """Whether it has ended, as soon as it has or when the time is up."""
        try:
            descriptor = os.pidfd_open(self._pid)
        except OSError:
            return True
        try:
            if self.ended() is None:  # after opening: the descriptor means this very process
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                poll.poll(None if timeout_s is None else int(timeout_s * 1000))
        finally:
            os.close(descriptor)
        return self.ended() is not None

    def ended(self) -> str | None:
        """How it ended, in words; `None` while it runs."""
        now = started_at(self._pid)
        return None if now == self._started and now != GONE else "it is gone"

    def signal(self, number: int) -> None:
        """Sends a signal; one that has ended gets none."""
        try:
            descriptor = os.pidfd_open(self._pid)
        except OSError:
            return
        try:
            if self.ended() is None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def _in_words(status: int) -> str:
    if status < 0:
        return f"it was ended by signal {-status}"
    return f"it ended with exit status {status}"
