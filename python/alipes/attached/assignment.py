"""What the server hands over for one instance, and the socket over which it does."""

from __future__ import annotations

import os
import socket
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

from alipes.worker.packet import close_all, receive
from alipes.worker.setup import Setup, read_setup

__all__ = ["Assignment", "AssignmentSocket"]

_DESCRIPTORS: Final = 5


@dataclass(frozen=True, slots=True)
class Assignment:
    """An instance that the server wants served.

    Attributes:
        setup: Which one, of which model.
        link: Descriptor of the link's memory.
        requests: Descriptor of the memory with requests.
        doorbell: The eventfd that wakes the server.
        lifeline: The socket whose end is the end of the instance.
    """

    setup: Setup
    link: int
    requests: int
    doorbell: int
    lifeline: int

    @classmethod
    def of(cls, descriptors: Sequence[int]) -> Self:
        """Takes descriptors over, in the order of the packet. Where that fails they are closed.

        Raises:
            ValueError: If the setup is not what this release hands over.
        """
        link, requests, setup, doorbell, lifeline = descriptors
        try:
            return cls(read_setup(setup), link, requests, doorbell, lifeline)
        except BaseException:
            close_all((link, requests, doorbell, lifeline))
            raise

    def close(self) -> None:
        """Closes what was not taken over: the server sees the instance end."""
        close_all((self.link, self.requests, self.doorbell, self.lifeline))


class AssignmentSocket:
    """The two ends of the socket. The script keeps the server's end too, for a server that has to be started again.

    A forked process has both closed: as long as it held the script's end, the server would not see the script end.
    """

    def __init__(self) -> None:
        """Opens it."""
        self._ours, self._servers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        _open.add(self)

    @property
    def descriptor(self) -> int:
        """The number of the server's end."""
        return self._servers.fileno()

    def receive(self) -> Assignment | None:
        """The next instance that the server hands over; waits for it. ``None``: the socket was ended.

        Raises:
            OSError: If this process has no descriptor left; what came is closed, and the server sees that.
            ValueError: If the server is of another release.
        """
        descriptors = receive(self._ours, _DESCRIPTORS)
        return None if descriptors is None else Assignment.of(descriptors)

    def end(self) -> None:
        """Has `receive` return, now and later."""
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes both ends."""
        self._ours.close()
        self._servers.close()


_open: Final[weakref.WeakSet[AssignmentSocket]] = weakref.WeakSet()


def _close_in_child() -> None:
    for one in tuple(_open):
        one.close()


os.register_at_fork(after_in_child=_close_in_child)
