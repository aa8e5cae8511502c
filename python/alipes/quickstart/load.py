"""A small closed-loop load: a few kept-alive connections, each with one request in flight, for some seconds.

It runs on one Python thread with the requests prepared in advance. That is as fast as Python gets, and still the client
is slower than the server: its rate is a lower bound, and its latencies hold the time that answers wait for the client.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final

from alipes.errors import TransportError
from alipes.quickstart.signals import HeldBack, held_back

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

CONNECTIONS: Final = 32

_TICK_S: Final = 0.1
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load saw.

    Attributes:
        seconds: From the first request to the last answer.
        failures: Answers with another status than 200; they count in no other figure.
        client_busy: Share of the time that this process used a core: near 1, it is the client that cannot do more.
        latencies_ns: INT64, one entry for each good answer.
    """

    connections: int
    seconds: float
    failures: int
    client_busy: float
    latencies_ns: npt.NDArray[np.int64]

    @property
    def per_second(self) -> float:
        """Good answers per second."""
        return len(self.latencies_ns) / self.seconds

    def percentile_ms(self, percent: float) -> float:
        """The latency that this percentage of the good answers did not exceed; NaN without any."""
        import numpy as np

        return float(np.percentile(self.latencies_ns, percent)) / 1e6 if len(self.latencies_ns) else float("nan")


def http_request(address: str, path: str, body: bytes) -> bytes:
    """A POST as it goes over the wire."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {address}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + _HEAD_END + body


def answer_length(received: bytes | bytearray) -> int | None:
    """Bytes of the answer at the front of what was received; `None` while its head is not complete.

    Raises:
        TransportError: If the head gives no length.
    """
    end = received.find(_HEAD_END)
    if end < 0:
        return None
    head = bytes(received[:end]).lower()
    at = head.find(_LENGTH)
    if at < 0:
        raise TransportError("the server's answer gives no Content-Length")
    return end + len(_HEAD_END) + int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0])


def run(
    address: str,
    requests: Sequence[bytes],
    seconds: float,
    connections: int = CONNECTIONS,
    tick: Callable[[float], None] = lambda elapsed_s: None,
) -> LoadResult:
    """Sends the requests round and round until the time is up, and waits for the last answers.

    Args:
        address: `host:port` of the HTTP endpoint.
        requests: Complete requests, as `http_request` makes them.
        seconds: How long new requests are sent.
        connections: How many connections send, each one request at a time.
        tick: Called now and then with the seconds elapsed.

    Raises:
        TransportError: If a connection cannot be opened, or breaks.
    """
    # An exception out of a handler would leave the event loop between two of its steps.
    with held_back() as signals, asyncio.Runner() as runner:
        return runner.run(_stopped_by(signals, _run(address, requests, seconds, connections, tick)))


async def _stopped_by(signals: HeldBack, load: Coroutine[None, None, LoadResult]) -> LoadResult:
    """The load's result; a signal cancels it."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(load)
    signals.stop = lambda: loop.call_soon_threadsafe(task.cancel)
    if signals.seen:
        task.cancel()
    try:
        return await task
    finally:
        signals.stop = lambda: None


class _Record:
    """What all connections write down together."""

    def __init__(self) -> None:
        self.sending = True
        self.failures = 0
        self.latencies_ns = array("q")


class _Connection(asyncio.Protocol):
    """One connection: each complete answer is written down and sends the next request."""

    def __init__(self, record: _Record, requests: Iterator[bytes]) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._record = record
        self._requests = requests
        self._received = bytearray()
        self._sent_ns = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._received += data
        try:
            length = answer_length(self._received)
        except TransportError as error:
            self._end(error)
            return
        if length is not None and len(self._received) >= length:
            self._write_down()
            del self._received[:length]
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(TransportError(f"the server closed a connection before it answered: {exc or 'end of stream'}"))

    def close(self) -> None:
        """Closes the connection, whatever it is waiting for."""
        self.ended.cancel()
        if self._transport is not None:
            self._transport.close()

    def _next(self) -> None:
        assert self._transport is not None
        if self._record.sending:
            self._sent_ns = time.perf_counter_ns()
            self._transport.write(next(self._requests))
        else:
            self._end(None)

    def _write_down(self) -> None:
        if self._received.startswith(b"HTTP/1.1 200"):
            self._record.latencies_ns.append(time.perf_counter_ns() - self._sent_ns)
        else:
            self._record.failures += 1

    def _end(self, error: TransportError | None) -> None:
        if not self.ended.done():
            if error is None:
                self.ended.set_result(None)
            else:
                self.ended.set_exception(error)
        self.close()


async def _run(
    address: str, requests: Sequence[bytes], seconds: float, connections: int, tick: Callable[[float], None]
) -> LoadResult:
    import numpy as np

    record, opened = _Record(), list[_Connection]()
    started, started_cpu = time.perf_counter(), time.process_time()
    try:
        for number in range(connections):
            opened.append(await _open(address, record, islice(cycle(requests), number, None)))
        while (elapsed := time.perf_counter() - started) < seconds and not any(one.ended.done() for one in opened):
            tick(elapsed)
            await asyncio.sleep(min(_TICK_S, seconds - elapsed))
        record.sending = False
        await asyncio.gather(*(one.ended for one in opened))
    finally:
        for one in opened:
            one.close()
    elapsed = time.perf_counter() - started
    busy = (time.process_time() - started_cpu) / elapsed
    return LoadResult(connections, elapsed, record.failures, busy, np.array(record.latencies_ns, np.int64))


async def _open(address: str, record: _Record, requests: Iterator[bytes]) -> _Connection:
    host, _, port = address.rpartition(":")
    try:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(record, requests), host, int(port)
        )
    except OSError as error:
        raise TransportError(f"{address}: {error}") from error
    return connection
