"""Sockets of clients that misbehave."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

_TIMEOUT_S = 60.0


@contextlib.contextmanager
def links(address: str, count: int, wire: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections to ``host:port``, each of which begins with these bytes as soon as it is open."""
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            opened.append(connect(address))
            opened[-1].sendall(wire)
        yield opened
    finally:
        for link in opened:
            link.close()


def connect(address: str) -> socket.socket:
    """A connection to ``host:port``."""
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)


def rest(link: socket.socket) -> bytes:
    """Everything that comes until the server closes; a connection that is reset has ended too."""
    received = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := link.recv(1 << 16):
            received += piece
    return bytes(received)
