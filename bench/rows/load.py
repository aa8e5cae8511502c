"""Rows that a load tool measures: the same request, over and over, to each contender."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bench.fleet import Fleet
from bench.load import h2load, stream, wrk
from bench.load.h2load import Streams
from bench.load.tool import Measurement
from bench.rows.row import CPU_US, Cell, Facts, Sample
from bench.servers.endpoint import Endpoint
from bench.work import GRPC, STREAMS, Work

RATE = "requests/s"
RESPONSE_RATE = "responses/s"
MEDIAN = "µs, median"
LATENCY_PIECES = 6


@dataclass(frozen=True)
class Contender:
    """A server and what it is sent."""

    label: str
    #: Name of the server in the fleet.
    server: str
    work: Work
    #: How it is loaded, where that differs from the row's way.
    streams: Streams | None = None


@dataclass(frozen=True)
class LoadRow:
    """Contenders under the same load."""

    facts: Facts
    contenders: tuple[Contender, ...]
    streams: Streams

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """A cell for each contender that is there."""
        cells = []
        for contender in self.contenders:
            endpoint = fleet.endpoint(contender.server, contender.work)
            if endpoint is not None:
                answer_bytes = fleet.answer_bytes(contender.server, contender.work)
                measure = partial(self._measure, contender, endpoint, answer_bytes)
                cells.append(Cell(contender.label, measure))
        return cells

    def _measure(self, contender: Contender, endpoint: Endpoint, answer_bytes: int, seconds: float) -> Sample:
        work, latency = contender.work, self.facts.unit == MEDIAN
        cpu_before_s = endpoint.process.cpu_seconds()
        measurement = self._load(contender, endpoint, answer_bytes, seconds, latency=latency)
        # Steadier than any rate where others use the machine too.
        cpu_us = (endpoint.process.cpu_seconds() - cpu_before_s) / measurement.requests * 1e6
        detail = {**measurement.as_json(), CPU_US: cpu_us}
        return Sample(measurement.p50_us if latency else measurement.rate * work.responses, dict(detail))

    def _load(
        self, contender: Contender, endpoint: Endpoint, answer_bytes: int, seconds: float, *, latency: bool
    ) -> Measurement:
        work, streams = contender.work, contender.streams or self.streams
        port = endpoint.port(work)
        if work.form in STREAMS:
            return stream.post(port, work, streams.per_connection, seconds)
        if work.form == GRPC:
            return h2load.post(port, work, streams, seconds, answer_bytes, latency=latency)
        path, encrypted = endpoint.path(work), endpoint.tls is not None
        return wrk.post(port, work, streams.connections, seconds, path, encrypted=encrypted)
