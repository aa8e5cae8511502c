"""A network of its own for a test and what it starts: nothing in it reaches the machine's, nor the other way."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

# Source: linux/sched.h.
_CLONE_NEWNET = 0x40000000


@contextmanager
def own_network(address: str) -> Iterator[None]:
    """A network with the loopback interface alone, for this thread and what it starts until the block ends.

    The system removes it with everything in it once the last of its processes has ended.

    Args:
        address: A further address of the loopback interface, `1.2.3.4/32`.

    Raises:
        PermissionError: If this user may have none.
        OSError: If the system has none.
    """
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("unshare", _CLONE_NEWNET)
        try:
            for words in (["link", "set", "lo", "up"], ["address", "add", address, "dev", "lo"]):
                subprocess.run(["ip", *words], check=True)
            yield
        finally:
            _call("setns", before, _CLONE_NEWNET)
    finally:
        os.close(before)


def _call(name: str, *arguments: int) -> None:
    """A function of the C library that Python 3.11 has not."""
    if ctypes.CDLL(None, use_errno=True)[name](*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
