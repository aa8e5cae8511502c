"""The process that imports an app: an app's code never runs in the server.

It describes the app, and then waits. The first worker of the app that is started goes on in it: what it has imported,
and that may be a framework that takes seconds, is not imported twice. One that no worker takes is ended.

This module imports little: `alipes serve` starts the process before it reads its own flags.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import contextmanager, suppress
from select import POLLIN, poll

TYPE_CHECKING = False  # true for type checkers; an import of `typing` takes milliseconds
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["AppProcess", "started_ahead"]

MAX_BYTES = 1 << 24
"""Longest description: the app's code can write it."""

_SERVER_PID = "ALIPES_SERVER_PID"
"""The variable by which the process knows its server, to end with it."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120  # pathlib takes long
_BOOTSTRAP = f"{_PACKAGE}/worker/bootstrap.py"
"""What starts a worker, and this process."""


@contextmanager
def started_ahead(words: Sequence[str]) -> Iterator[AppProcess | None]:
    """A process for the first app that a command line may name; ended after the block, unless it is a worker.

    It imports what every app needs, while the server imports what it needs itself, and nothing of the app before it is
    asked. None where no word looks like an app, or no process can be started: the server says so later.

    Args:
        words: The words of `alipes serve`.
    """
    process = None
    if any(_may_name_an_app(word) for word in words):
        with suppress(OSError):
            process = AppProcess()
    try:
        yield process
    finally:
        if process is not None:
            process.close()


def _may_name_an_app(word: str) -> bool:
    return not word.startswith("-") and "://" not in word and (word.endswith(".py") or ":" in word)


class AppProcess:
    """One such process. The kernel ends it when the thread that has started it ends, also once it is a worker."""

    def __init__(self) -> None:
        """Starts it. It imports what every app needs, and waits to be asked.

        Raises:
            OSError: If it cannot be.
        """
        self._key = ""
        self._answer = os.memfd_create("description")
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._pid = _start(self._answer, theirs.fileno())
        except BaseException:
            self._link.close()
            os.close(self._answer)
            raise

    def ask(self, question: str) -> None:
        """Has it import an app and describe it, as `alipes.worker.apps.describe` says."""
        with suppress(OSError):  # it has ended, which `answer` sees
            self._link.send(question.encode())

    def answer(self, timeout_s: float) -> bytes:
        """What it says of the app; empty where it has ended without a word.

        Args:
            timeout_s: Longest wait in seconds.

        Raises:
            TimeoutError: If the time is up.
        """
        pidfd = os.pidfd_open(self._pid)
        try:
            events = poll()
            events.register(self._link, POLLIN)
            events.register(pidfd, POLLIN)
            if not events.poll(timeout_s * 1000):
                raise TimeoutError
        finally:
            os.close(pidfd)
        with suppress(OSError):
            if self._link.recv(64, socket.MSG_DONTWAIT):
                return os.pread(self._answer, MAX_BYTES + 1, 0)
        return b""

    def offer(self, key: str) -> None:
        """Leaves it, once it has described its app, for the worker of a key that starts first."""
        from alipes import _core

        pid, self._pid = self._pid, 0
        self._key = key
        _core.offer_process(key, pid, self._link.detach())

    def end(self) -> int:
        """Ends it with all that it has started; its exit code, or the negative number of the signal that ended it."""
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        """Ends it, unless it has ended or is a worker."""
        if self._key:
            from alipes import _core

            _core.withdraw_process(self._key)
            self._key = ""
        if self._pid:
            self.end()
        if self._answer >= 0:
            os.close(self._answer)
            self._answer = -1
        self._link.close()


def _start(answer: int, link: int) -> int:
    """Starts the process; its number. Not by `subprocess`, which would wait for it later on."""
    theirs = (answer, link)
    copies = [os.dup(descriptor) for descriptor in theirs]  # one that is copied onto itself would not be inherited
    try:
        inherited = [(os.POSIX_SPAWN_DUP2, copy, number) for copy, number in zip(copies, theirs, strict=True)]
        return os.posix_spawn(
            sys.executable,
            [sys.executable, _BOOTSTRAP, "--describe", str(answer), str(link)],
            {**os.environ, _SERVER_PID: str(os.getpid())},
            file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), *inherited],
            setpgroup=0,
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
    finally:
        for descriptor in copies:
            os.close(descriptor)
