"""Connections that are held open and bring nothing."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from typing import Final

from support.attack import connect
from support.under_attack.strike import CLOSED, Prepare, word
from support.under_attack.target import Target
from support.under_attack.uploads import PATH

_LOOK_S: Final = 0.05
_DRIP_S: Final = 0.5
# The beginning of a request that says it will be large.
_BEGUN: Final = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 40000000\r\n\r\n".encode()


def one_byte_bodies(count: int) -> Prepare:
    """Requests of which the head and one byte have come."""
    return lambda target: _Holder(target, count, _BEGUN + b"{")


def begun(count: int, length: int) -> Prepare:
    """Requests of which so many bytes have come, head included."""
    return lambda target: _Holder(target, count, _BEGUN.ljust(length))


def silent(count: int) -> Prepare:
    """Connections that never say a word."""
    return lambda target: _Holder(target, count, b"")


def slow_heads(count: int) -> Prepare:
    """Requests whose heads come a byte at a time, and never end."""
    return lambda target: _Holder(target, count, b"GET /v2/health/live HTTP/1.1\r\nX: ", drip=b"x")


class _Holder:
    """Holds connections, and opens another one for each that the server closes."""

    def __init__(self, target: Target, count: int, wire: bytes, drip: bytes = b"") -> None:
        self._address, self._count = target.http, count
        self._wire, self._drip = wire, drip
        self._open: dict[int, socket.socket] = {}
        self._closed = select.epoll()
        self._dripped_s = time.monotonic()

    def __call__(self) -> str:
        """Opens those that are missing, then looks which were closed; says so of one."""
        while len(self._open) < self._count:
            self._add()
        if self._drip and time.monotonic() - self._dripped_s > _DRIP_S:
            self._dripped_s = time.monotonic()
            for link in self._open.values():
                self._send(link, self._drip)
        for descriptor, _ in self._closed.poll(_LOOK_S, maxevents=1):
            return self._take(descriptor)
        return ""

    def _take(self, descriptor: int) -> str:
        """Closes one that was answered or closed."""
        self._closed.unregister(descriptor)
        with self._open.pop(descriptor) as link:
            try:
                return word(link.recv(64))
            except ConnectionError:
                return CLOSED

    def _add(self) -> None:
        link = connect(self._address)
        self._open[link.fileno()] = link
        self._closed.register(link, select.EPOLLIN | select.EPOLLRDHUP)
        self._send(link, self._wire)

    @staticmethod
    def _send(link: socket.socket, wire: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # the next look finds it
            link.sendall(wire)
