"""What a worker owes the machine: to end with its server, to leave signals to it, and to hand nothing on."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import signal
import sys
import threading
from io import TextIOWrapper
from typing import Final

__all__ = ["LEAVE_WITHIN_S", "Leaving", "end_with", "keep_descriptors", "leave_signals", "show_output"]

# Whatever a model leaves running must not keep its process: threads and exit handlers have this long.
LEAVE_WITHIN_S: Final = 5.0

# Numbers of <linux/prctl.h>.
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15

# Signals that terminals and service managers send to all processes of a server.
_LEFT_TO_THE_SERVER: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_with(server: int | None, name: str) -> None:
    """Has the kernel end this process when its server ends, however that comes about.

    Args:
        server: Process id of the server; ``None`` where it is not known.
        name: What `top` and `ps` show; the kernel keeps 15 bytes of it.
    """
    try:
        import ctypes
    except ImportError:  # a Python built without libffi
        sys.stderr.write(f"{sys.executable} has no ctypes: a worker would outlive a server that is killed\n")
    else:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the kernel refuses to end this process with its server")
        libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)
    # The server may have ended before the request above.
    if server is not None and os.getppid() != server:
        sys.stderr.write(f"the server, process {server}, is gone (the parent is process {os.getppid()}): leaving\n")
        sys.stderr.flush()
        os._exit(1)


def leave_signals() -> None:
    """Leaves Ctrl-C, a service manager's SIGTERM and SIGHUP to the server, which gets them too: it drains or reloads.

    Handlers that do nothing rather than ``SIG_IGN``: programs that a model starts would inherit that, and could not be
    stopped. A forked child inherits handlers; `multiprocessing` ends its children with SIGTERM, so they lose them.
    """
    for number in _LEFT_TO_THE_SERVER:
        signal.signal(number, _do_nothing)
    os.register_at_fork(after_in_child=_be_stoppable)


def _do_nothing(_number: int, _frame: object) -> None:
    pass


def _be_stoppable() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is _do_nothing:
            signal.signal(number, signal.SIG_DFL)


def keep_descriptors(*descriptors: int) -> None:
    """Keeps the link from programs that the model starts.

    A child that outlives the worker would keep memory of requests that no process can reach any more. Once the link is
    opened one descriptor is left, elsewhere, and a process that the model forks has it closed.
    """
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)


def show_output() -> None:
    """Sends each line that the model prints to the server's console at once, and a fatal fault's place as well."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Not written through: each line in one piece, also where PYTHONUNBUFFERED would write it word by word.
            stream.reconfigure(line_buffering=True, write_through=False)
    if sys.stderr is not None:
        faulthandler.enable(file=sys.stderr, all_threads=True)


class Leaving:
    """Makes sure that the process ends once its main function has returned.

    Python then waits for threads and runs exit handlers. Ours is the last of them and skips the rest: libraries that
    are torn down in the wrong order crash there, and nothing of a worker is left to save.
    """

    def __init__(self) -> None:
        """To be made before anything else registers an exit handler: the last in is the first out."""
        self._status = 1  # of a main function that does not return
        self._process = os.getpid()
        atexit.register(self._end)

    def now(self, status: int) -> int:
        """Starts the time that is left, and gives the status back for the main function to return."""
        self._status = status
        last = threading.Timer(LEAVE_WITHIN_S, self._end)
        last.daemon = True
        last.start()
        return status

    def _end(self) -> None:
        if os.getpid() != self._process:  # a child that the model forked, and that ends by itself
            return
        for stream in (sys.stdout, sys.stderr):
            # The model or the reader may have closed it.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(self._status)
