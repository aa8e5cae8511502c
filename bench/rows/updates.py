"""What a Python client makes of one stream of updates: ours, and the same loop written with `tritonclient`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from bench.fleet import ALIPES, Fleet
from bench.load import updates, wrk
from bench.models import streaming
from bench.paths import WORK
from bench.rows.load import RATE
from bench.rows.row import CPU_US, Better, Cell, Facts, Row, Sample, Target
from bench.servers.endpoint import Endpoint
from bench.work import JSON, work

OURS = "alipes.client.InferenceClient"
THEIRS = "the same loop with tritonclient"
WRK = "wrk, HTTP JSON to a small model"
MODEL = "stream"
IN_FLIGHT = 1024
CONNECTIONS = 64


@dataclass(frozen=True)
class UpdatesRow:
    """Updates of one sequence through a streaming ensemble, from one Python process."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            "updates",
            "Streaming ensemble asked from Python, 1 stream, 1 sequence",
            RATE,
            Better.MORE,
            (Target(OURS, THEIRS, 4), Target(OURS, WRK, 0.2)),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Both clients on one server, and what the machine does for a load tool."""
        endpoint = fleet.alipes_on("streaming", streaming.write(WORK / "streaming"))
        small = fleet.endpoint(ALIPES, work("mlp", JSON))
        cells = [
            Cell(label, partial(_stream, client, endpoint))
            for label, client in ((OURS, "alipes"), (THEIRS, "tritonclient"))
        ]
        return cells if small is None else [*cells, Cell(WRK, partial(_wrk, small))]


def updates_rows() -> list[Row]:
    """The rows, in the order of the table."""
    return [UpdatesRow()]


def _stream(client: str, endpoint: Endpoint, seconds: float) -> Sample:
    cpu_before_s = endpoint.process.cpu_seconds()
    measurement = updates.post(client, endpoint.grpc_port, MODEL, streaming.ASKED[MODEL], IN_FLIGHT, seconds)
    cpu_us = (endpoint.process.cpu_seconds() - cpu_before_s) / measurement.requests * 1e6
    return Sample(measurement.rate, {**measurement.as_json(), CPU_US: cpu_us})


def _wrk(endpoint: Endpoint, seconds: float) -> Sample:
    small = work("mlp", JSON)
    measurement = wrk.post(endpoint.port(small), small, CONNECTIONS, seconds, endpoint.path(small), encrypted=False)
    return Sample(measurement.rate, dict(measurement.as_json()))
