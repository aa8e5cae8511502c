"""Requests of the first priority level beside many more of the second than the model can serve."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.fleet import Fleet
from bench.load import wrk
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers.endpoint import Endpoint
from bench.work import BINARY, FULL, URGENT, work

MODEL = "levels"
#: Requests of the second level that wait or run at any time: four times what the model takes at once.
OVERLOAD = 4 * work(MODEL, FULL).rows
BESIDE = "first level, beside the overload"
ALLOWED = "first level, nothing else: twice, and one batch"


@dataclass(frozen=True)
class PriorityRow:
    """The first level's 99th percentile under overload, against what a strict order allows.

    A batch that runs is not interrupted, so the first level waits for one; it must not wait for more.
    """

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="priority",
            title=f"Priority level 1 beside {OVERLOAD} requests of level 2 in flight, batches of 8, 1 connection",
            unit="µs, 99th percentile",
            better=Better.LESS,
            targets=(Target(BESIDE, ALLOWED, 1.0),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """What is allowed, then what is seen."""
        endpoint = fleet.alipes(MODEL)
        for form in (BINARY, URGENT, FULL):
            endpoint.check(work(MODEL, form))
        return [
            Cell(ALLOWED, lambda seconds: _allowed(endpoint, seconds)),
            Cell(BESIDE, lambda seconds: _beside(endpoint, seconds)),
        ]


def _allowed(endpoint: Endpoint, seconds: float) -> Sample:
    quiet = wrk.post(endpoint.http_port, work(MODEL, URGENT), 1, seconds)
    batch = wrk.post(endpoint.http_port, work(MODEL, FULL), 1, seconds)
    return Sample(2 * quiet.p99_us + batch.p50_us, {"quiet": quiet.as_json(), "batch": batch.as_json()})


def _beside(endpoint: Endpoint, seconds: float) -> Sample:
    with wrk.saturated(endpoint.http_port, work(MODEL, BINARY), OVERLOAD):
        measurement = wrk.post(endpoint.http_port, work(MODEL, URGENT), 1, seconds)
    return Sample(measurement.p99_us, dict(measurement.as_json()))
