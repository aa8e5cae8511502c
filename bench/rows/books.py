"""Health, statistics and metrics while a model is saturated: who watches the server must not wait for it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.fleet import Fleet
from bench.load import wrk
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers.endpoint import Endpoint
from bench.work import JSON, work

SMALL = "mlp"
#: Connections that keep the model saturated.
CONNECTIONS = 64
BOUND_US = 5000
LIVE = "/v2/health/live"
STATISTICS = f"/v2/models/{SMALL}/stats"
METRICS = "/metrics"


@dataclass
class BooksRow:
    """99th percentiles of what tells about a server."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="books",
            title=f"Beside a saturated small model ({CONNECTIONS} connections), 1 connection",
            unit="µs, 99th percentile",
            better=Better.LESS,
            targets=tuple(Target(path, None, BOUND_US) for path in (LIVE, STATISTICS, METRICS)),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """One cell for each path."""
        endpoint = fleet.alipes(SMALL)
        endpoint.check(work(SMALL, JSON))
        ports = {LIVE: endpoint.http_port, STATISTICS: endpoint.http_port, METRICS: endpoint.metrics_port}
        return [
            Cell(path, lambda seconds, path=path, port=port: _get(endpoint, port, path, seconds))  # type: ignore[misc]
            for path, port in ports.items()
        ]


def _get(endpoint: Endpoint, port: int, path: str, seconds: float) -> Sample:
    with wrk.saturated(endpoint.http_port, work(SMALL, JSON), CONNECTIONS):
        measurement = wrk.get(port, path, 1, seconds)
    return Sample(measurement.p99_us, dict(measurement.as_json()))
