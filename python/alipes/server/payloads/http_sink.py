"""Sends events to a URL, one after the other over one connection."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from alipes.server.payloads.cloudevent import cloudevent
from alipes.server.payloads.sink import Payload, Sink, SinkFailed

__all__ = ["HttpSink"]

_MOST_OF_AN_ANSWER: Final = 64 << 10
"""Bytes of an answer that are read, so that its connection can be used again; one that says more is left."""


class HttpSink(Sink):
    """A URL that takes events."""

    def __init__(self, url: str, timeout_s: float, source: Mapping[str, str]) -> None:
        """Connects when the first event is sent.

        Args:
            url: Where events are posted.
            timeout_s: Seconds in which one must be taken.
            source: Attributes of events that say who sends them.
        """
        self._source = dict(source)
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._connection: HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            self._connection = HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)
        else:
            self._connection = HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)

    def send(self, payloads: Sequence[Payload]) -> None:
        """Sends events.

        Raises:
            SinkFailed: If the sink refuses one, or does not answer in time.
        """
        for payload in payloads:
            self._send(cloudevent(payload.head, self._source), payload.body)

    def _send(self, headers: Mapping[str, str], body: bytes) -> None:
        try:
            status, reason = self._post(headers, body)
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise SinkFailed(str(error) or type(error).__name__) from error
        if not 200 <= status < 300:
            raise SinkFailed(f"it answered {status} {reason}")

    def _post(self, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        self._connection.request("POST", self._path, body=body, headers=dict(headers))
        with self._connection.getresponse() as response:
            response.read(_MOST_OF_AN_ANSWER)
            if not response.isclosed():
                self._connection.close()
            return response.status, response.reason

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()
