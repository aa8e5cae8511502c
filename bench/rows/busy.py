"""A model that computes in Python itself, saturated: does it leave the rest of the server its share of the machine?"""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field

from bench.fleet import Fleet
from bench.load import wrk
from bench.rows.load import RATE
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers.endpoint import Endpoint
from bench.work import BINARY, JSON, work

BUSY = "busy"
SMALL = "mlp"
SMALL_CONNECTIONS = 64
#: One request runs, the others wait.
BUSY_CONNECTIONS = 4
QUIET_RATE = "small model, nothing else"
BUSY_RATE = "small model beside the busy Python model"
LIVE_BUSY = "/v2/health/live beside the busy Python model"
LIVE_BOTH = "/v2/health/live beside both models"
LIVE_BOUND_US = 5000


def fair_share() -> float:
    """What a model with one thread leaves of the machine: all cores but one, or half of the only one."""
    cores = len(os.sched_getaffinity(0))
    return round(max(cores - 1, 0.5) / cores, 2)


@dataclass
class BusyRow:
    """Rate of the small model."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="busy",
            title=f"Beside a saturated Python model, HTTP JSON, {SMALL_CONNECTIONS} connections",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(BUSY_RATE, QUIET_RATE, fair_share()),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The small model alone, then beside the busy one."""
        endpoint = _endpoint(fleet)
        return [
            Cell(QUIET_RATE, lambda seconds: _rate(endpoint, seconds, nullcontext())),
            Cell(BUSY_RATE, lambda seconds: _rate(endpoint, seconds, _busy(endpoint))),
        ]


@dataclass
class BusyLiveRow:
    """99th percentile of health."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="busy_live",
            title="Beside a saturated Python model, 1 connection",
            unit="µs, 99th percentile",
            better=Better.LESS,
            targets=(Target(LIVE_BUSY, None, LIVE_BOUND_US), Target(LIVE_BOTH, None, LIVE_BOUND_US)),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Health while the busy model works, and while the small one is saturated, too."""
        endpoint = _endpoint(fleet)
        return [
            Cell(LIVE_BUSY, lambda seconds: _live(endpoint, seconds)),
            Cell(LIVE_BOTH, lambda seconds: _live(endpoint, seconds, _small(endpoint))),
        ]


def _endpoint(fleet: Fleet) -> Endpoint:
    endpoint = fleet.alipes(SMALL, BUSY)
    endpoint.check(work(SMALL, JSON))
    endpoint.check(work(BUSY, BINARY))
    return endpoint


def _busy(endpoint: Endpoint) -> AbstractContextManager[None]:
    return wrk.saturated(endpoint.http_port, work(BUSY, BINARY), BUSY_CONNECTIONS)


def _small(endpoint: Endpoint) -> AbstractContextManager[None]:
    return wrk.saturated(endpoint.http_port, work(SMALL, JSON), SMALL_CONNECTIONS)


def _rate(endpoint: Endpoint, seconds: float, company: AbstractContextManager[None]) -> Sample:
    with company:
        measurement = wrk.post(endpoint.http_port, work(SMALL, JSON), SMALL_CONNECTIONS, seconds)
    return Sample(measurement.rate, dict(measurement.as_json()))


def _live(endpoint: Endpoint, seconds: float, *more: AbstractContextManager[None]) -> Sample:
    with ExitStack() as load:
        for company in (_busy(endpoint), *more):
            load.enter_context(company)
        measurement = wrk.get(endpoint.http_port, "/v2/health/live", 1, seconds)
    return Sample(measurement.p99_us, dict(measurement.as_json()))
