"""The server as a child process that inherits the listening sockets."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from alipes.activation.listening import HeldSocket
from alipes.config.inherited import FIRST_DESCRIPTOR

__all__ = ["Child"]

_PR_SET_PDEATHSIG: Final = 1
_CANNOT_START: Final = 127
"""Exit code where the program is not there, as shells have it."""
_FIRST_COPY: Final = 100
"""Copies of descriptors are above those that the child is to have, so that none is written over."""


class Child:
    """A server that was started, until its exit code is read."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], sockets: Sequence[HeldSocket]) -> None:
        """Starts it. The process that calls this has one thread, so that it may fork.

        It has a process group of its own: a signal from the terminal comes once, from here. If this process is killed,
        it gets SIGTERM.

        Args:
            command: The program and its arguments.
            environ: Its environment, to which the names of the sockets are added.
            sockets: What it inherits.
        """
        names = ":".join(one.name for one in sockets)
        variables = {**environ, "LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": names}
        copies = [fcntl.fcntl(one.socket, fcntl.F_DUPFD_CLOEXEC, _FIRST_COPY) for one in sockets]
        libc = ctypes.CDLL(None)
        parent = os.getpid()
        self.process = os.fork()
        if self.process == 0:
            _become(command, variables, copies, libc, parent)
        for copy in copies:
            os.close(copy)
        self.descriptor = os.pidfd_open(self.process)

    def signal(self, number: int) -> None:
        """Passes a signal on; one that comes when it has ended does nothing."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, number)

    def wait(self) -> int:
        """Waits for its end; the exit code, or the number of the signal that ended it, below 0."""
        _, status = os.waitpid(self.process, 0)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status)

    def kill(self, timeout_s: float) -> int:
        """Asks it to end, and ends it where it does not in time."""
        self.signal(signal.SIGTERM)
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        if not poll.poll(timeout_s * 1000):
            self.signal(signal.SIGKILL)
        return self.wait()


def _become(
    command: Sequence[str], variables: Mapping[str, str], copies: Sequence[int], libc: ctypes.CDLL, parent: int
) -> None:
    """Becomes the server; never returns."""
    try:
        os.setpgid(0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:  # it ended before the line above took effect
            os._exit(_CANNOT_START)
        for place, copy in enumerate(copies):
            os.dup2(copy, FIRST_DESCRIPTOR + place)  # dup2 has the copy survive the change of the program
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(command[0], list(command), {**variables, "LISTEN_PID": str(os.getpid())})
    except OSError as error:
        print(f"error: cannot start {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
    finally:
        os._exit(_CANNOT_START)
