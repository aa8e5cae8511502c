"""A model that takes some 200 ms, saturated: does the rest of the server notice?"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from bench.fleet import ALIPES, Fleet
from bench.load import wrk
from bench.load.tool import Measurement
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers.endpoint import Endpoint
from bench.work import JSON, work

#: One request runs, the others wait.
SLOW_CONNECTIONS = 4
LIVE_BUSY = "/v2/health/live beside the slow model"
MLP_BUSY = "small model beside the slow model"
MLP_QUIET = "small model, nothing else"
LIVE_BOUND_US = 5000
MLP_BOUND = 3.0


@dataclass
class SlowRow:
    """99th percentiles of health and of a small model, one connection each."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="slow",
            title="Beside a saturated model of 200 ms, 1 connection",
            unit="µs, 99th percentile",
            better=Better.LESS,
            targets=(Target(LIVE_BUSY, None, LIVE_BOUND_US), Target(MLP_BUSY, MLP_QUIET, MLP_BOUND)),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The small model alone, then health and the small model while the slow one is busy."""
        fleet.endpoint(ALIPES, work("slow", JSON))
        endpoint = fleet.endpoint(ALIPES, work("mlp", JSON))
        if endpoint is None:
            return []
        return [
            Cell(MLP_QUIET, lambda seconds: _sample(_mlp(endpoint, seconds))),
            Cell(LIVE_BUSY, lambda seconds: _busy_live(endpoint, seconds)),
            Cell(MLP_BUSY, lambda seconds: _busy_mlp(endpoint, seconds)),
        ]


def _mlp(endpoint: Endpoint, seconds: float) -> Measurement:
    return wrk.post(endpoint.http_port, work("mlp", JSON), 1, seconds)


def _busy_mlp(endpoint: Endpoint, seconds: float) -> Sample:
    with _saturated(endpoint):
        return _sample(_mlp(endpoint, seconds))


def _busy_live(endpoint: Endpoint, seconds: float) -> Sample:
    with _saturated(endpoint):
        return _sample(wrk.get(endpoint.http_port, "/v2/health/live", 1, seconds))


def _saturated(endpoint: Endpoint) -> AbstractContextManager[None]:
    return wrk.saturated(endpoint.http_port, work("slow", JSON), SLOW_CONNECTIONS)


def _sample(measurement: Measurement) -> Sample:
    return Sample(measurement.p99_us, dict(measurement.as_json()))
