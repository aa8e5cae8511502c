"""Rows that a load tool measures: the same request, over and over, to each contender."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bench.fleet import Fleet
from bench.load import h2load, stream, wrk
from bench.load.h2load import Streams
from bench.load.tool import Measurement
from bench.rows.row import Cell, Facts, Sample
from bench.servers.endpoint import Endpoint
from bench.work import GRPC, STREAM, Work

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
                cells.append(Cell(contender.label, partial(self._measure, contender.work, endpoint, answer_bytes)))
        return cells

    def _measure(self, work: Work, endpoint: Endpoint, answer_bytes: int, seconds: float) -> Sample:
        latency = self.facts.unit == MEDIAN
        cpu_before_s = endpoint.process.cpu_seconds()
        measurement = self._load(work, endpoint, answer_bytes, seconds, latency=latency)
        # Steadier than any rate where others use the machine too.
        cpu_us = (endpoint.process.cpu_seconds() - cpu_before_s) / measurement.requests * 1e6
        detail = {**measurement.as_json(), "server_cpu_us_per_request": cpu_us}
        return Sample(measurement.p50_us if latency else measurement.rate * work.responses, dict(detail))

    def _load(self, work: Work, endpoint: Endpoint, answer_bytes: int, seconds: float, *, latency: bool) -> Measurement:
        port = endpoint.port(work)
        if work.form == STREAM:
            return stream.post(port, work, self.streams.per_connection, seconds)
        if work.form == GRPC:
            return h2load.post(port, work, self.streams, seconds, answer_bytes, latency=latency)
        return wrk.post(port, work, self.streams.connections, seconds, endpoint.path(work))
