"""The thread that sends what the data plane has copied."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from alipes.server.log import log
from alipes.server.payloads.cloudevent import cloudevent
from alipes.server.payloads.http_sink import HttpSink, SinkFailed
from alipes.server.service_thread import ServiceThread

if TYPE_CHECKING:
    from alipes import _core
    from alipes.config.options import PayloadOptions

__all__ = ["PayloadSender", "payload_sender"]

_WAIT_S: Final = 1.0
"""Longest wait for a payload, and so for the check whether to end."""
_REPORT_AFTER_S: Final = 60.0
"""How often a line says that the sink takes nothing; no line follows each event."""
_PAUSES_S: Final = (0.05, 5.0)
"""The first and the longest pause after a payload that the sink did not take: to ask it for each costs a core."""


class PayloadSender(ServiceThread):
    """Sends payloads until it is stopped: then those that wait, as far as its time goes.

    A sink that takes nothing costs requests nothing: what waits for it is bounded, and the rest is dropped and counted.
    """

    def __init__(self, core: _core.Server, sink: HttpSink, source: Mapping[str, str]) -> None:
        """Prepares the thread."""
        super().__init__("alipes-payloads")
        self._core = core
        self._sink = sink
        self._source = source
        self._pause_s = 0.0
        self._reported_s: float | None = None
        self._unreported = 0

    def stop(self, timeout_s: float) -> bool:
        """Sends what waits, up to what the sink does not take; true if that ended within `timeout_s` seconds."""
        self._core.close_payloads()
        return super().stop(timeout_s)

    def _run(self) -> None:
        while True:
            payload = self._core.next_payload(_WAIT_S)
            if payload is not None:
                self._send(*payload)
            if self._is_over(is_empty=payload is None):
                self._sink.close()
                return

    def _is_over(self, *, is_empty: bool) -> bool:
        """Whether the thread is to end; pauses first where the sink did not take the last payload."""
        if self._pause_s:
            return self._stopping.wait(self._pause_s)
        return is_empty and self._stopping.is_set()

    def _send(self, text: str, body: bytes) -> None:
        try:
            self._sink.send(cloudevent(json.loads(text), self._source), body)
        except SinkFailed as error:
            self._core.note_payloads(0, 1)
            self._pause_s = min(max(2 * self._pause_s, _PAUSES_S[0]), _PAUSES_S[1])
            self._report(str(error))
        except Exception:  # a payload that cannot be sent must not end the log of all others
            self._core.note_payloads(0, 1)
            log.exception("a payload cannot be logged")
        else:
            self._core.note_payloads(1, 0)
            self._pause_s = 0.0
            if self._reported_s is not None:
                log.info("the payload log is taken again")
                self._reported_s = None

    def _report(self, reason: str) -> None:
        self._unreported += 1
        now = time.monotonic()
        if self._reported_s is None or now - self._reported_s >= _REPORT_AFTER_S:
            log.warning("the payload log's sink did not take %d payloads: %s", self._unreported, reason)
            self._reported_s, self._unreported = now, 0


def payload_sender(core: _core.Server, options: PayloadOptions) -> PayloadSender | None:
    """The thread for what is to be logged; None where nothing is."""
    if not options.url:
        return None
    return PayloadSender(core, HttpSink(options.url, options.timeout_s), dict(options.source))
