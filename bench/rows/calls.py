"""What a call costs that a Python program waits for: ours over both wires, and the same with `tritonclient`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bench.fleet import ALIPES, Fleet
from bench.load import calls, h2load
from bench.load.h2load import Streams
from bench.rows.load import MEDIAN, RATE
from bench.rows.row import Better, Cell, Facts, Row, Sample, Target
from bench.servers.endpoint import Endpoint
from bench.work import GRPC, Work, work

GRPC_LABEL = "alipes.client.Client, gRPC"
HTTP_LABEL = "alipes.client.Client, HTTP"
THEIRS = "tritonclient, gRPC"
TOOL = "h2load, 16 connections"
ALONE = "1 process"
TOGETHER = "16 processes"
PROCESSES = 16


@dataclass(frozen=True)
class Caller:
    """A client that calls, in so many processes."""

    label: str
    client: str
    processes: int = 1


@dataclass(frozen=True)
class CallsRow:
    """Calls of one model by several clients, on the same server."""

    facts: Facts
    model: str
    callers: tuple[Caller, ...]
    #: Whether a load tool shows what the server can do.
    tool: bool = False

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """One for each client."""
        piece = work(self.model, GRPC)
        endpoint = fleet.endpoint(ALIPES, piece)
        if endpoint is None:
            return []
        cells = [Cell(caller.label, partial(self._call, caller, endpoint, piece)) for caller in self.callers]
        if not self.tool:
            return cells
        answer_bytes = fleet.answer_bytes(ALIPES, piece)
        return [*cells, Cell(TOOL, partial(_drive, endpoint, piece, answer_bytes))]

    def _call(self, caller: Caller, endpoint: Endpoint, piece: Work, seconds: float) -> Sample:
        port = endpoint.http_port if caller.client == "http" else endpoint.grpc_port
        measurement = calls.post(caller.client, port, piece.model, caller.processes, seconds)
        value = measurement.p50_us if self.facts.unit == MEDIAN else measurement.rate
        return Sample(value, dict(measurement.as_json()))


def calls_rows() -> list[Row]:
    """The rows, in the order of the table."""
    clients = (Caller(GRPC_LABEL, "grpc"), Caller(HTTP_LABEL, "http"), Caller(THEIRS, "tritonclient"))
    processes = (Caller(ALONE, "grpc"), Caller(TOGETHER, "grpc", PROCESSES))
    return [
        CallsRow(_against("client_small", "A small model called from Python, 1 process", 3), "mlp", clients),
        CallsRow(_against("client_large", "3x224x224 FP32 called from Python, 1 process", 2), "image", clients),
        CallsRow(
            Facts(
                "client_processes",
                "A small model called from Python, 16 processes",
                RATE,
                Better.MORE,
                (Target(TOGETHER, ALONE), Target(TOGETHER, TOOL)),
            ),
            "mlp",
            processes,
            tool=True,
        ),
    ]


def _against(name: str, title: str, bound: float) -> Facts:
    return Facts(name, title, RATE, Better.MORE, (Target(GRPC_LABEL, THEIRS, bound), Target(HTTP_LABEL, THEIRS)))


def _drive(endpoint: Endpoint, piece: Work, answer_bytes: int, seconds: float) -> Sample:
    streams = Streams(PROCESSES, 1)
    measurement = h2load.post(endpoint.grpc_port, piece, streams, seconds, answer_bytes, latency=False)
    return Sample(measurement.rate, dict(measurement.as_json()))
