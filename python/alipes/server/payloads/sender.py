"""The thread that sends what the data plane has copied."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from alipes.server.log import log
from alipes.server.payloads.batch import Batch, BatchLimits
from alipes.server.payloads.exchange import read_head
from alipes.server.payloads.http_sink import HttpSink
from alipes.server.payloads.sink import Payload, Sink, SinkFailed
from alipes.server.service_thread import ServiceThread

if TYPE_CHECKING:
    from alipes import _core
    from alipes.config.record_options import PayloadOptions

__all__ = ["PayloadSender", "payload_sender"]

_WAIT_S: Final = 1.0
"""Longest wait for a payload, and so for the check whether to end."""
_REPORT_AFTER_S: Final = 60.0
"""How often a line says that the sink takes nothing; no line follows each event."""
_PAUSES_S: Final = (0.05, 5.0)
"""The first and the longest pause after payloads that the sink did not take: to ask it for each costs a core."""
_MOST_OF_A_FILE: Final = 16 << 20
"""Bytes of bodies at which a file is written before its time: they wait in memory, and a put in a bucket is one call
for files of this size."""
_ONE: Final = BatchLimits(1, 0, 0.0)
"""KServe's receivers take one event in each request."""


class PayloadSender(ServiceThread):
    """Sends payloads until it is stopped: then those that wait, as far as its time goes.

    A sink that takes nothing costs requests nothing: what waits for it is bounded, and the rest is dropped and counted.
    """

    def __init__(self, core: _core.Server, sink: Sink, limits: BatchLimits) -> None:
        """Prepares the thread."""
        super().__init__("alipes-payloads")
        self._core = core
        self._sink = sink
        self._batch = Batch(limits)
        self._pause_s = 0.0
        self._reported_s: float | None = None
        self._unreported = 0

    def stop(self, timeout_s: float) -> bool:
        """Sends what waits, up to what the sink does not take; true if that ended within `timeout_s` seconds."""
        self._core.close_payloads()
        return super().stop(timeout_s)

    def _run(self) -> None:
        while not self._is_over():
            pass
        self._sink.close()

    def _is_over(self) -> bool:
        """Takes the next payload, and sends what is due; true where that was the last."""
        # Looked at first: what comes until the log is closed comes before the empty queue that ends it.
        is_ending = self._stopping.is_set()
        payload = self._core.next_payload(self._batch.wait_s(_WAIT_S))
        if payload is not None:
            text, body = payload
            self._batch.add(Payload(read_head(text), body))
        is_last = is_ending and payload is None
        if self._batch.is_due or (is_last and self._batch):
            self._send(self._batch.take())
            if self._pause_s:
                return self._stopping.wait(self._pause_s)
        return is_last

    def _send(self, payloads: list[Payload]) -> None:
        count = len(payloads)
        try:
            self._sink.send(payloads)
        except SinkFailed as error:
            self._core.note_payloads(0, count)
            self._pause_s = min(max(2 * self._pause_s, _PAUSES_S[0]), _PAUSES_S[1])
            self._report(str(error), count)
        except Exception:  # payloads that cannot be sent must not end the log of all others
            self._core.note_payloads(0, count)
            log.exception("payloads cannot be logged")
        else:
            self._core.note_payloads(count, 0)
            self._pause_s = 0.0
            if self._reported_s is not None:
                log.info("the payload log is taken again")
                self._reported_s = None

    def _report(self, reason: str, count: int) -> None:
        self._unreported += count
        now = time.monotonic()
        if self._reported_s is None or now - self._reported_s >= _REPORT_AFTER_S:
            log.warning("the payload log's sink did not take %d payloads: %s", self._unreported, reason)
            self._reported_s, self._unreported = now, 0


def payload_sender(core: _core.Server, options: PayloadOptions) -> PayloadSender | None:
    """The thread for what is to be logged; None where nothing is.

    Raises:
        ConfigError: If a package is missing that the files need.
    """
    if not options.url:
        return None
    source = dict(options.source)
    if not options.is_files:
        return PayloadSender(core, HttpSink(options.url, options.timeout_s, source), _ONE)
    from alipes.server.payloads.file_sink import FileSink

    limits = BatchLimits(options.batch_size, _MOST_OF_A_FILE, options.batch_interval_s)
    return PayloadSender(core, FileSink(options.url, options.format, source), limits)
