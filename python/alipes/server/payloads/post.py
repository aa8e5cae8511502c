"""Posts events over one connection, at little cost: what the log takes of the processors, requests do not have.

The client of the standard library reads the head of an answer as a mail and costs five times as much.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

__all__ = ["BadAnswer", "Poster"]

_MOST_OF_AN_ANSWER: Final = 64 << 10
"""Bytes of an answer that are read, so that its connection can be used again; one that says more is left."""
_READ_BYTES: Final = 16 << 10
_PORTS: Final = {"http": 80, "https": 443}
_LAST_CHUNK: Final = b"0\r\n\r\n"


class BadAnswer(OSError):
    """What answers does not speak HTTP."""


class Poster:
    """One address, and the connection to it."""

    def __init__(self, url: str, timeout_s: float) -> None:
        """Connects when the first event is posted.

        Args:
            url: The address.
            timeout_s: Longest wait for the other side, in seconds.
        """
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._host, self._port = parts.hostname, parts.port or _PORTS[parts.scheme]
        self._context = ssl.create_default_context() if parts.scheme == "https" else None
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        host = f"[{self._host}]" if ":" in self._host else self._host
        port = "" if self._port == _PORTS[parts.scheme] else f":{self._port}"
        self._begin = f"POST {path} HTTP/1.1\r\nhost: {host}{port}\r\naccept-encoding: identity\r\n"

    def post(self, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        """Posts a body; returns the status of the answer, and its words.

        Raises:
            OSError: If it cannot be sent, or is not answered in time.
            ValueError: If a header is none.
        """
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
            raise ValueError("a header of a payload has a line break in it")
        request = f"{self._begin}{lines}content-length: {len(body)}\r\n\r\n".encode("latin-1") + body
        try:
            connection = self._connected()
            connection.sendall(request)
            return self._answer(connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        """The connection; another where the other side has closed it, as most do once they have heard nothing long."""
        if self._socket is not None and _speaks(self._socket):
            self.close()
        if self._socket is None:
            made = socket.create_connection((self._host, self._port), self._timeout_s)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self._socket = made if self._context is None else self._secured(made, self._context)
            except BaseException:
                made.close()
                raise
        return self._socket

    def _secured(self, connection: socket.socket, context: ssl.SSLContext) -> socket.socket:
        return context.wrap_socket(connection, server_hostname=self._host)

    def _answer(self, connection: socket.socket) -> tuple[int, str]:
        """The status of the answer. It is read as a whole, or its connection is closed."""
        read = b""
        while True:
            while (end := read.find(b"\r\n\r\n")) < 0:
                read += _more(connection, len(read))
            head, read = read[:end], read[end + 4 :]
            status, reason = _status(head)
            if status >= 200:
                break
        if not self._is_read(connection, status, head.lower(), read):
            self.close()
        return status, reason

    def _is_read(self, connection: socket.socket, status: int, head: bytes, read: bytes) -> bool:
        """Reads the body; whether the connection can be used again."""
        if b"\r\nconnection: close" in head or head.startswith(b"http/1.0"):
            return False
        if status in (204, 304):
            return not read
        if b"\r\ntransfer-encoding:" in head:
            while not read.endswith(_LAST_CHUNK):
                if len(read) > _MOST_OF_AN_ANSWER:
                    return False
                read += _more(connection, 0)
            return True
        size = _length(head)
        if size is None or size > _MOST_OF_AN_ANSWER:
            return False
        while len(read) < size:
            read += _more(connection, 0)
        return len(read) == size


def _speaks(connection: socket.socket) -> bool:
    """Whether there is something to read where nothing was asked: the end, as a rule."""
    poll = select.poll()  # `select` itself takes no descriptor above 1023
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _more(connection: socket.socket, had: int) -> bytes:
    """The next bytes of an answer."""
    if had > _MOST_OF_AN_ANSWER:
        raise BadAnswer("its answer has no end of its headers")
    found = connection.recv(_READ_BYTES)
    if not found:
        raise BadAnswer("it closed the connection without an answer")
    return found


def _status(head: bytes) -> tuple[int, str]:
    version, _, rest = head.partition(b"\r\n")[0].partition(b" ")
    number, _, reason = rest.partition(b" ")
    if not (version.startswith(b"HTTP/1.") and number.isdigit() and len(number) == 3):
        raise BadAnswer(f"its answer is none of HTTP: {head[:40].decode('latin-1')!r}")
    return int(number), reason.decode("latin-1")


def _length(head: bytes) -> int | None:
    """The length that a head names; None where it names none, and the end of the connection is that of the body."""
    _, found, rest = head.partition(b"\r\ncontent-length:")
    digits = rest.partition(b"\r\n")[0].strip()
    return int(digits) if found and digits.isdigit() else None
