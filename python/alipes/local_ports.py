"""The local port map: from the port that a script names to the one at which a server of this process listens.

A script names `localhost:8001`, the usual port of servers. If another process uses that port, `serve` starts its server
on a free one and publishes both here; clients and monitors of the same process resolve addresses before they connect.
The map lives in memory only: other processes learn real addresses from the process that starts them.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["PortMapping", "is_ours", "reserved_ports", "resolve"]

_ADDRESS: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)?(?P<host>\[[^\]]*\]|[^:/\[\]]*):(?P<port>\d+)(?P<rest>/.*)?"
)
_ALWAYS_OURS: Final = frozenset({"", "localhost", "localhost.localdomain", "127.0.0.1", "::1", "0.0.0.0", "::"})
_WILDCARDS: Final = frozenset({"", "0.0.0.0", "::"})

_lock = threading.Lock()
_current: tuple[PortMapping, ...] = ()
"""The running servers, the newest last. Replaced as a whole, so that reading needs no lock."""


class PortMapping:
    """The ports of one server: `publish` adds them to the map, `withdraw` removes them."""

    def __init__(self, host: str = "", alive: Callable[[], bool] = lambda: True) -> None:
        """Publishes nothing yet.

        Args:
            host: The address that the server listens at; empty for every address of this machine.
            alive: Whether the server still runs, for a server that another process may end.
        """
        self.alive = alive
        self._host = host
        self._ports: Mapping[int, int] = {}

    def publish(self, ports: Mapping[int, int]) -> None:
        """Adds the port at which the server listens for each port that a script may name.

        The newest server comes first; publishing again keeps the position.
        """
        global _current  # noqa: PLW0603
        with _lock:
            self._ports = dict(ports)
            if self not in _current:
                _current = (*_current, self)

    def withdraw(self) -> None:
        """Removes the server; a second time does nothing."""
        global _current  # noqa: PLW0603
        with _lock:
            _current = tuple(one for one in _current if one is not self)

    @property
    def listens(self) -> frozenset[int]:
        """The ports at which the server listens, or soon will."""
        return frozenset(self._ports.values())

    def address(self, host: str, port: int) -> tuple[str, int] | None:
        """The real host and port; `None` if the server does not stand for this port."""
        actual = self._ports.get(port)
        if actual is None:
            return None
        return (host if self._host in _WILDCARDS else self._host), actual


def resolve(address: str) -> str:
    """The address at which a server of this process answers, for the one that a script names.

    Args:
        address: `host:port`, with a scheme and a path or without.

    Returns:
        The same with the real host and port, where a server that this process started and that runs now was asked for
        that port of this machine; the newest one if there are several. Anything else comes back as it is.
    """
    servers = _current
    parts = _ADDRESS.fullmatch(address)
    if not servers or parts is None:
        return address
    host, port = parts["host"], int(parts["port"])
    for server in reversed(servers):
        found = server.address(host, port)
        if found is not None and server.alive() and is_ours(host.strip("[]")):
            return f"{parts['scheme'] or ''}{found[0]}:{found[1]}{parts['rest'] or ''}"
    return address


def reserved_ports() -> frozenset[int]:
    """Ports at which servers of this process listen, or are about to."""
    return frozenset().union(*(server.listens for server in _current if server.alive()))


def is_ours(host: str) -> bool:
    """Whether a name or an address means this machine."""
    if host in _ALWAYS_OURS or host.startswith("127.") or host == socket.gethostname():
        return True
    try:
        return any(
            _binds(family, place) for family, _, _, _, place in socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)
        )
    except OSError:
        return False


def _binds(family: int, place: tuple[object, ...]) -> bool:
    """Whether an address can be bound, which the system allows for its own alone."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(place)
        except OSError:
            return False
        return True
