"""The listening sockets of a server that does not run yet."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from alipes.config.listener_options import Endpoint
from alipes.config.options import ServerOptions
from alipes.errors import ServerStartError

__all__ = ["HeldSocket", "hold_sockets"]

_ENDPOINTS: Final = ("http", "grpc")
"""Metrics are left to the server: a monitor that reads them every few seconds would start it each time."""
_BACKLOG: Final = 1024
"""As many connections may wait as for a server that runs."""
_MOST_ENDED: Final = 4096
"""Of waiting connections at a time: the queue may hold some more than it was asked for."""


@dataclass(frozen=True)
class HeldSocket:
    """A listening socket that outlives the server.

    Attributes:
        name: The endpoint that it is for.
        socket: The socket.
        path: Its file, where it is a Unix socket.
        is_plain_http: Whether a client can be answered in HTTP without a server.
    """

    name: str
    socket: socket.socket
    path: Path | None = None
    is_plain_http: bool = False

    def close(self) -> None:
        """Closes it; clients that still wait are sent away."""
        self.socket.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def end_waiting(self, reason: str) -> int:
        """Ends the connections that wait, over HTTP with an error as an answer; returns how many there were."""
        for ended in range(_MOST_ENDED):
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return ended
            with contextlib.closing(connection), contextlib.suppress(OSError):
                if self.is_plain_http:
                    connection.setblocking(False)
                    connection.send(_unavailable(reason))
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(1 << 16)  # bytes that nobody has read would take the answer back
        return _MOST_ENDED


def hold_sockets(options: ServerOptions) -> list[HeldSocket]:
    """Opens the sockets of the endpoints that a server has.

    Raises:
        ServerStartError: If an address is in use or not ours, or no endpoint can be held.
    """
    held: list[HeldSocket] = []
    try:
        for name in _ENDPOINTS:
            endpoint: Endpoint = getattr(options, name)
            if endpoint.enabled:
                held.append(_held(name, endpoint))
    except ServerStartError:
        for one in held:
            one.close()
        raise
    if not held:
        raise ServerStartError("there is nothing to hold: allow HTTP or gRPC")
    return held


def _held(name: str, endpoint: Endpoint) -> HeldSocket:
    is_plain_http = name == "http" and not endpoint.tls.enabled and not endpoint.tls.mutual
    place = endpoint.address if endpoint.is_path else f"{endpoint.address}:{endpoint.port}"
    try:
        if endpoint.is_path:
            path = Path(endpoint.address.removeprefix("unix:"))
            return HeldSocket(name, _on_path(path), path, is_plain_http)
        return HeldSocket(name, _at(endpoint), None, is_plain_http)
    except OSError as error:
        raise ServerStartError(f"cannot listen on '{place}' for {name}: {error.strerror or error}") from error


def _at(endpoint: Endpoint) -> socket.socket:
    failure = OSError("the name has no address")
    flags = socket.AI_PASSIVE
    for family, kind, protocol, _, address in socket.getaddrinfo(
        endpoint.address, endpoint.port, type=socket.SOCK_STREAM, flags=flags
    ):
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if endpoint.reuse_port:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            opened.bind(address)
            return _listening(opened)
        except OSError as error:
            opened.close()
            failure = error
    raise failure


def _on_path(path: Path) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_stale(path):
            path.unlink()
        opened.bind(os.fspath(path))
        return _listening(opened)
    except OSError:
        opened.close()
        raise


def _listening(opened: socket.socket) -> socket.socket:
    opened.setblocking(False)
    opened.listen(_BACKLOG)
    return opened


def _is_stale(path: Path) -> bool:
    """Whether a path is a socket that a killed process left behind: connections to it are refused."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
            tried.connect(os.fspath(path))
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _unavailable(reason: str) -> bytes:
    body = json.dumps({"error": reason}).encode()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
