"""What the data plane may take of the memory, looked at again while the server runs.

The limit of a container can change under a process that runs in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Self

from alipes.config.memory_limit import memory_limit_bytes
from alipes.config.options import ServerOptions
from alipes.server.log import log
from alipes.server.service_thread import ServiceThread

__all__ = ["MemoryShares", "MemoryWatch"]

# Requests and answers may take one part in so many of the memory, and connections another: models need the rest.
_PART: Final = 4

# How late a changed limit is noticed. A look reads a handful of small files.
INTERVAL_S: Final = 10.0


class MemoryShares(NamedTuple):
    """Bytes that the data plane may take.

    Attributes:
        inflight_bytes: For requests and answers in flight.
        connection_bytes: For connections, unless their number is given.
    """

    inflight_bytes: int
    connection_bytes: int

    @classmethod
    def now(cls, options: ServerOptions) -> Self:
        """The shares by the options and by the memory that there is."""
        part = memory_limit_bytes() // _PART
        return cls(options.inflight_bytes or part, part)


class MemoryWatch(ServiceThread):
    """Tells the data plane when its shares have changed."""

    def __init__(self, options: ServerOptions, limit_memory: Callable[[int, int], None]) -> None:
        """Prepares the thread.

        Args:
            options: Give some of the shares.
            limit_memory: Takes the new shares.
        """
        super().__init__("alipes-memory")
        self._options = options
        self._limit_memory = limit_memory
        self._shares = MemoryShares.now(options)

    def look(self) -> None:
        """Looks once."""
        shares = MemoryShares.now(self._options)
        if shares != self._shares:
            self._shares = shares
            self._limit_memory(*shares)
            log.info("The memory limit has changed: requests in flight may take %d bytes.", shares.inflight_bytes)

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL_S):
            self.look()
