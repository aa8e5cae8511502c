"""Load testers against the small model: how fast each drives it, and what a request costs the tester itself."""

import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from bench.fleet import ALIPES, Fleet
from bench.load import h2load, own, wrk
from bench.load.h2load import Streams
from bench.load.tool import Measurement
from bench.rows.load import RATE
from bench.rows.row import CPU_US, Better, Cell, Facts, Row, Sample, Target
from bench.servers.endpoint import Endpoint
from bench.work import GRPC, JSON, Work, work

SMALL = "mlp"
OWN = "alipes loadtest"
WRK = "wrk"
H2LOAD = "h2load"
STREAMS = {JSON: Streams(64, 1), GRPC: Streams(8, 8)}
WIRES = {JSON: "http", GRPC: "grpc"}


def tester_rows() -> list[Row]:
    """A row for each protocol; where others stand for the server's processor time, here it is the tester's."""
    http = Facts(
        "testers_http",
        "The small model loaded by two testers: HTTP JSON, 64 connections",
        RATE,
        Better.MORE,
        (Target(OWN, WRK, 0.8),),
    )
    grpc = Facts(
        "testers_grpc",
        "The small model loaded by two testers: gRPC, 8 connections x 8 streams",
        RATE,
        Better.MORE,
        (Target(OWN, H2LOAD, 0.7),),
    )
    return [TesterRow(http, JSON), TesterRow(grpc, GRPC)]


@dataclass(frozen=True)
class TesterRow:
    """Testers that load the same server in turn."""

    facts: Facts
    form: str

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """A cell for each tester of the protocol."""
        closed = Closed.to(fleet, self.form)
        if closed is None:
            return []
        port, piece, streams = closed.port, closed.piece, closed.streams

        answer_bytes = fleet.answer_bytes(ALIPES, piece) if self.form == GRPC else 0

        def load(seconds: float) -> Measurement:
            if self.form != GRPC:
                return wrk.post(port, piece, streams.connections, seconds)
            return h2load.post(port, piece, streams, seconds, answer_bytes, latency=False)

        other = H2LOAD if self.form == GRPC else WRK
        return [
            Cell(OWN, lambda seconds: _own(closed.run(seconds))),
            Cell(other, lambda seconds: _sample(lambda: load(seconds))),
        ]


@dataclass(frozen=True)
class Closed:
    """The engine's closed loop to the small model, over a protocol."""

    endpoint: Endpoint
    piece: Work
    streams: Streams
    wire: str

    @classmethod
    def to(cls, fleet: Fleet, form: str) -> Self | None:
        """One over a protocol; none where the server is not there."""
        piece = work(SMALL, form)
        endpoint = fleet.endpoint(ALIPES, piece)
        return None if endpoint is None else cls(endpoint, piece, STREAMS[form], WIRES[form])

    @property
    def port(self) -> int:
        """The server's, of the protocol."""
        return self.endpoint.port(self.piece)

    def run(self, seconds: float) -> tuple[Measurement, float]:
        """What was measured, and the processor time of the threads that sent, in microseconds for each request.

        Raises:
            LoadFailed: If a request failed.
        """
        return own.post(self.port, self.piece, self.streams, seconds, self.wire)


def _own(seen: tuple[Measurement, float]) -> Sample:
    measurement, cpu_us = seen
    # The threads that send alone: the interpreter that starts them is no part of a request.
    return Sample(measurement.rate, {**measurement.as_json(), CPU_US: cpu_us})


def _sample(load: Callable[[], Measurement]) -> Sample:
    before = _children_s()
    measurement = load()
    cpu_us = (_children_s() - before) / measurement.requests * 1e6
    return Sample(measurement.rate, {**measurement.as_json(), CPU_US: cpu_us})


def _children_s() -> float:
    """Processor time of the programs that this one has run to their ends."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
