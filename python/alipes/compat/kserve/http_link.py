"""HTTP requests to a predictor, awaited: each waits on a thread, over connections that are kept."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

__all__ = ["HttpAnswer", "HttpLink", "InvalidURL"]

_THREADS: Final = 64
"""Most requests of a client that wait at the same time; further ones wait for their turn."""


class InvalidURL(Exception):
    """The address of a server is none."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer.

    Attributes:
        status: Its status.
        reason: The words behind it.
        headers: Its headers, with names in small letters.
        content: Its body.
        url: Where it came from.
    """

    status: int
    reason: str
    headers: dict[str, str]
    content: bytes
    url: str

    @property
    def is_success(self) -> bool:
        """Whether the status is of 2xx."""
        return 200 <= self.status < 300


class HttpLink:
    """Connections of one client to whatever servers it asks."""

    def __init__(self, retries: int, verify: str | bool | ssl.SSLContext, certificate: Any) -> None:
        """Connects to nothing yet.

        Args:
            retries: How often a connection that cannot be made is tried again.
            verify: Certificates to believe: the system's, those of a file, a context, or any at all for False.
            certificate: What this client shows: a file, or certificate, key and password.
        """
        self._retries = retries
        self._verify, self._certificate = verify, certificate
        self._idle: dict[tuple[str, str], list[HTTPConnection]] = {}
        self._taking = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, "alipes-predictor")

    async def ask(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], timeout_s: float | None
    ) -> HttpAnswer:
        """The answer to a request.

        Raises:
            OSError: If the server cannot be reached, or takes longer (`TimeoutError`).
            InvalidURL: If the address is none.
        """
        target = _split(url)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._ask, method, target, body, dict(headers), timeout_s)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._taking:
            idle, self._idle = self._idle, {}
        for connection in (one for several in idle.values() for one in several):
            connection.close()
        self._threads.shutdown(wait=False)

    def _ask(
        self, method: str, target: SplitResult, body: bytes | None, headers: dict[str, str], timeout_s: float | None
    ) -> HttpAnswer:
        while True:
            connection, is_used = self._take(target, timeout_s)
            try:
                return self._exchange(connection, method, target, body, headers)
            except (HTTPException, OSError) as error:
                connection.close()
                # A server may close a connection that has been idle just when a request is sent on it.
                if is_used and not isinstance(error, TimeoutError):
                    continue
                if isinstance(error, HTTPException):
                    raise ConnectionError(f"{type(error).__name__}: {error}") from error
                raise

    def _take(self, target: SplitResult, timeout_s: float | None) -> tuple[HTTPConnection, bool]:
        with self._taking:
            idle = self._idle.get((target.scheme, target.netloc))
            connection = idle.pop() if idle else None
        if connection is not None:
            connection.timeout = timeout_s
            connection.sock.settimeout(timeout_s)
            return connection, True
        for left in range(self._retries, -1, -1):
            connection = self._connection(target, timeout_s)
            try:
                connection.connect()
                return connection, False
            except OSError:
                if left == 0:
                    raise
        raise AssertionError

    def _connection(self, target: SplitResult, timeout_s: float | None) -> HTTPConnection:
        host = target.hostname or ""
        if target.scheme == "http":
            return HTTPConnection(host, target.port, timeout=timeout_s)
        return HTTPSConnection(host, target.port, timeout=timeout_s, context=self._context())

    def _context(self) -> ssl.SSLContext:
        if isinstance(self._verify, ssl.SSLContext):
            return self._verify
        context = ssl.create_default_context(cafile=self._verify if isinstance(self._verify, str) else None)
        if self._verify is False:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self._certificate is not None:
            parts = (self._certificate,) if isinstance(self._certificate, str) else tuple(self._certificate)
            context.load_cert_chain(*parts)
        return context

    def _exchange(
        self, connection: HTTPConnection, method: str, target: SplitResult, body: bytes | None, headers: dict[str, str]
    ) -> HttpAnswer:
        path = (target.path or "/") + (f"?{target.query}" if target.query else "")
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        content = response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
        answer = HttpAnswer(response.status, response.reason, found, content, target.geturl())
        if response.will_close:
            connection.close()
        else:
            with self._taking:
                self._idle.setdefault((target.scheme, target.netloc), []).append(connection)
        return answer


def _split(url: str) -> SplitResult:
    target = urlsplit(url)
    if target.scheme not in ("http", "https"):
        raise InvalidURL("Base url should have 'http://' or 'https://' protocol")
    if not target.netloc:
        raise InvalidURL("Base url should not be a relative url")
    return target
