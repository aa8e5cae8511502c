"""Holds listening sockets, and runs the server while somebody asks for it.

States: *asleep*, without a server, until a connection waits; *awake*, until the server ends; *held back*, for some time
after a failure, until it may be started again. A connection that comes in any of them waits in the queue of its socket.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Final

from alipes.activation.backoff import Backoff
from alipes.activation.child import Child
from alipes.activation.listening import HeldSocket
from alipes.server.log import log

__all__ = ["Activator"]

_STOP: Final = (signal.SIGTERM, signal.SIGINT)
_PASSED_ON: Final = (*_STOP, signal.SIGHUP)
_READY: Final = b"READY=1"


class Activator:
    """Runs a server when it is needed; a context manager, which closes what it holds."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], sockets: Sequence[HeldSocket]) -> None:
        """Takes what is started, and what is held for it.

        Args:
            command: The server's program and its arguments.
            environ: Its environment.
            sockets: Its listening sockets, which are closed at the end.
        """
        self._command = command
        self._sockets = sockets
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notices.setblocking(False)
        self._notices.bind("")  # the system finds a name, which is no file
        name: bytes = self._notices.getsockname()
        self._environ = {**environ, "NOTIFY_SOCKET": f"@{os.fsdecode(name[1:])}"}
        self._backoff = Backoff()
        self._signals, self._wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._child: Child | None = None
        self._is_ready = False
        self._stopping = False

    def __enter__(self) -> Activator:
        """Takes the signals over."""
        self._before = {number: signal.signal(number, _ignore) for number in _PASSED_ON}
        self._before_wakeup = signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        """Gives the signals back, and closes what is held."""
        signal.set_wakeup_fd(self._before_wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for one in self._sockets:
            one.close()
        self._notices.close()
        os.close(self._signals)
        os.close(self._wakeup)

    def run(self) -> int:
        """Runs until a signal ends it; the exit code of the server, or 0 where none runs."""
        while self._wait_for_connection():
            code = self._run_server()
            if self._stopping:
                return code
        return 0

    def _wait_for_connection(self) -> bool:
        """Whether a connection waits, or else a signal to stop has come."""
        while not self._stopping:
            seen = self._wait([one.socket.fileno() for one in self._sockets], None)
            if seen - {self._signals}:
                return not self._stopping
        return False

    def _run_server(self) -> int:
        """Runs the server once; returns how it ended."""
        log.info("a connection waits: the server is started")
        self._child = Child(self._command, self._environ, self._sockets)
        self._is_ready = False
        while self._child.descriptor not in self._wait([self._child.descriptor, self._notices.fileno()], None):
            self._read_notices()
        self._read_notices()
        code = self._child.wait()
        self._child = None
        if code == 0:
            log.info("the server has ended: the next connection starts it again")
        elif not self._stopping:
            self._hold_back(code)
            return 0
        # The signal that was passed on ends a server that does not listen to signals yet.
        return 0 if code == 0 or -code in _STOP else 1

    def _hold_back(self, code: int) -> None:
        """Waits after a failure. Clients of a server that does not come up are sent away."""
        how = f"with exit code {code}" if code > 0 else f"by {signal.Signals(-code).name}"
        wait_s = self._backoff.fail()
        if self._is_ready:
            log.error("the server ended %s: the next connection starts it again, in %g s at the earliest", how, wait_s)
        else:
            reason = f"the server ended {how} while it started: its own lines in the log say why"
            ended = sum(one.end_waiting(reason) for one in self._sockets)
            log.error("%s; %d waiting connections were ended, and the next try is in %g s", reason, ended, wait_s)
        until = time.monotonic() + wait_s
        while not self._stopping and (left_s := until - time.monotonic()) > 0:
            self._wait([], left_s)

    def _wait(self, descriptors: Sequence[int], timeout_s: float | None) -> set[int]:
        """Which of some descriptors can be read; signals are passed on before it returns."""
        watched = [*descriptors, self._signals]
        seen = set(select.select(watched, [], [], timeout_s)[0])
        if self._signals in seen:
            for number in os.read(self._signals, 512):
                if number in _PASSED_ON:
                    self._pass_on(number)
        return seen

    def _pass_on(self, number: int) -> None:
        self._stopping = self._stopping or number in _STOP
        if self._child is not None:
            self._child.signal(number)

    def _read_notices(self) -> None:
        try:
            while True:
                if _READY in self._notices.recv(4096):
                    log.info("the server is ready")
                    self._is_ready = True
                    self._backoff.succeed()
        except BlockingIOError:
            return


def _ignore(number: int, frame: FrameType | None) -> None:
    """Does nothing: the number arrives through the pipe."""
