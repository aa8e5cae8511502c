"""The ports of this process's servers and of those that it was started with; addresses resolved by them."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from alipes.local_ports.lifetime import started_at
from alipes.local_ports.variable import VARIABLE, Entry, read_entries, write_entries

__all__ = ["PortMapping", "is_ours", "reserved_ports", "resolve"]

_ADDRESS: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)?(?P<host>\[[^\]]*\]|[^:/\[\]]*):(?P<port>\d+)(?P<rest>/.*)?"
)
_ALWAYS_OURS: Final = frozenset({"", "localhost", "localhost.localdomain", "127.0.0.1", "::1", "0.0.0.0", "::"})
_REAL: Final = frozenset({"127.0.0.1", "[::1]"})
"""By which `serve` itself names what listens at every address of this machine."""
_WILDCARDS: Final = frozenset({"", "0.0.0.0", "::"})

_lock = threading.Lock()
_inherited = os.environ.get(VARIABLE, "")
"""What this process was started with, by one that had servers."""

_older = read_entries(_inherited)
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
        self._alive = alive
        self._host = host
        self._entry: Entry | None = None

    def publish(self, ports: Mapping[int, int], pid: int | None = None) -> None:
        """Adds the port at which the server listens for each port that a script may name.

        The newest server comes first; publishing again keeps the position. Processes that are started from now on
        inherit the entry, and heed it until the server's process ends.

        Args:
            ports: The real port for each that may be named.
            pid: The server's process; this one where it is not known.
        """
        with _lock:
            self._entry = self._described(ports, os.getpid() if pid is None else pid)
            if self not in _current:
                _replace((*_current, self))
            else:
                _replace(_current)

    def withdraw(self) -> None:
        """Removes the server; a second time does nothing."""
        with _lock:
            if self in _current:
                _replace(tuple(one for one in _current if one is not self))

    def variables(self, ports: Mapping[int, int]) -> Mapping[str, str]:
        """The environment of a process that is to know this server before it is published: its own, for instance."""
        entry = self._described(ports, os.getpid())
        return {VARIABLE: write_entries([*_entries(_current), entry])}

    @property
    def entry(self) -> Entry | None:
        """What is published, while the server runs."""
        entry = self._entry
        return entry if entry is not None and entry.alive() and self._alive() else None

    def _described(self, ports: Mapping[int, int], pid: int) -> Entry:
        return Entry(self._host, dict(ports), pid, started_at(pid))


def _replace(servers: tuple[PortMapping, ...]) -> None:
    """Makes these the servers, for this process and for those that it starts; those that have ended go."""
    global _current  # noqa: PLW0603
    _current = servers = tuple(server for server in servers if server.entry is not None)
    if servers:
        os.environ[VARIABLE] = write_entries(_entries(servers))
    elif _inherited:
        os.environ[VARIABLE] = _inherited
    else:
        os.environ.pop(VARIABLE, None)


def _entries(servers: tuple[PortMapping, ...]) -> Iterator[Entry]:
    """What counts now, the newest last."""
    yield from (entry for entry in _older if entry.alive())
    yield from (entry for server in servers if (entry := server.entry) is not None)


def resolve(address: str) -> str:
    """The address at which a server of this process answers, for the one that a script names.

    Args:
        address: `host:port`, with a scheme and a path or without.

    Returns:
        The same with the real host and port, where a server was asked for that port of this machine which this process
        has started, or one that it descends from, and which runs now; the newest one if there are several. Anything
        else comes back as it is. So does an IP address of this machine with a port at which one of these servers
        listens: that is the real address of one, while `localhost` with the usual port means any.
    """
    servers = _current
    parts = _ADDRESS.fullmatch(address) if servers or _older else None
    if parts is None:
        return address
    host, port = parts["host"], int(parts["port"])
    entries = list(_entries(servers))
    if any(port in entry.ports.values() and host in (*_REAL, entry.host) for entry in entries if host != "localhost"):
        return address
    for entry in reversed(entries):
        if port in entry.ports and is_ours(host.strip("[]")):
            actual = host if entry.host in _WILDCARDS else entry.host
            return f"{parts['scheme'] or ''}{actual}:{entry.ports[port]}{parts['rest'] or ''}"
    return address


def reserved_ports() -> frozenset[int]:
    """Ports at which servers of this process, or of those that it descends from, listen or are about to."""
    return frozenset(port for entry in _entries(_current) for port in entry.ports.values())


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
