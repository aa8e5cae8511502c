"""The packet by which the server hands an instance over to a process that it has not started as a worker."""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

__all__ = ["close_all", "receive"]

_INSTANCE: Final = b"alipes-instance-1"
"""What it says; the data plane writes the same (`driver-worker/packet.rs`)."""

_MOST_DESCRIPTORS: Final = 16
"""Room for more than are expected: what does not fit would be lost, and say so."""


def receive(source: socket.socket, expected: int) -> list[int] | None:
    """The descriptors of the next packet; waits for it. ``None``: the socket was ended.

    Args:
        source: Where it comes from.
        expected: How many descriptors it carries.

    Raises:
        OSError: If this process has no descriptor left; what came is closed, and the server sees that.
        ValueError: If the server is of another release.
    """
    space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
    text, carried, flags, _ = source.recvmsg(len(_INSTANCE) + 1, space, socket.MSG_CMSG_CLOEXEC)
    if not text:
        return None
    descriptors = array.array("i")
    for level, kind, data in carried:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    try:
        if flags & socket.MSG_CTRUNC:
            raise OSError("this process has no descriptor left for an instance: raise its limit (ulimit -n)")
        if text != _INSTANCE:
            raise ValueError(f"the server handed over {text!r}, expected {_INSTANCE!r}")
        if len(descriptors) != expected:
            raise ValueError(f"the server handed {len(descriptors)} descriptors over, expected {expected}")
    except (OSError, ValueError):
        close_all(descriptors)
        raise
    return list(descriptors)


def close_all(descriptors: Sequence[int]) -> None:
    """Closes descriptors, whichever of them are open."""
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)
