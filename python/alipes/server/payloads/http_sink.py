"""Sends events to a URL, one after the other over one connection."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from alipes.server.payloads.cloudevent import cloudevent
from alipes.server.payloads.post import Poster
from alipes.server.payloads.sink import Payload, Sink, SinkFailed

__all__ = ["HttpSink"]


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
        self._poster = Poster(url, timeout_s)

    def send(self, payloads: Sequence[Payload]) -> None:
        """Sends events.

        Raises:
            SinkFailed: If the sink refuses one, or does not answer in time.
        """
        for payload in payloads:
            event = cloudevent(payload.head, self._source, time.time_ns())
            try:
                status, reason = self._poster.post(event, payload.body)
            except OSError as error:
                raise SinkFailed(str(error) or type(error).__name__) from error
            if not 200 <= status < 300:
                raise SinkFailed(f"it answered {status} {reason}")

    def close(self) -> None:
        """Closes the connection."""
        self._poster.close()
