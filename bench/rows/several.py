"""A Python client of four servers: what it costs to choose, and what a server that is killed costs its calls."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from bench.fleet import Fleet
from bench.load.calls import figures
from bench.load.several_calls import CLIENT_EACH, ONE_CLIENT, WARM
from bench.load.tool import LoadFailed
from bench.models.repository import repository
from bench.rows.load import RATE
from bench.rows.row import Better, Cell, Facts, Row, Sample, Target
from bench.servers import alipes
from bench.servers.endpoint import Endpoint
from bench.work import GRPC, work

SERVERS = 4
MODEL = "mlp"
TOGETHER = f"one client of {SERVERS} servers"
EACH = f"{SERVERS} clients, a server each"
KEPT_SHARE = 0.95

AROUND = "p99 of the second around the kill"
QUIET = "p99 before and after it"
FAILED = "failed calls"
MOST_TIMES = 3
#: Half of the second around the kill, and what is left out beside it: a server starts to be missed before it is known.
HALF_S = 0.5
BESIDE_S = 1.0


def several_rows() -> list[Row]:
    """The rows, in the order of the table."""
    return [SeveralRow(), SeveralKilledRow(), SeveralFailedRow()]


@dataclass
class SeveralRow:
    """Rate of four threads, with one client for all or one for each."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="several_servers",
            title=f"A small model called from Python, {SERVERS} threads, {SERVERS} servers",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(TOGETHER, EACH, KEPT_SHARE),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The same servers, with either way to call them."""
        endpoints = [fleet.of_row(_start(number)) for number in range(SERVERS)]
        for endpoint in endpoints:
            endpoint.check(work(MODEL, GRPC))
        ways = ((TOGETHER, ONE_CLIENT), (EACH, CLIENT_EACH))
        return [Cell(label, partial(_rate, way, endpoints)) for label, way in ways]


def _rate(way: str, endpoints: Sequence[Endpoint], seconds: float) -> Sample:
    found = figures("bench.load.several_calls", _arguments(way, seconds, endpoints), seconds)
    if found["failed"]:
        raise LoadFailed(f"calls failed: {found['failed'][0]}")
    return Sample(found["rate"], {"cpu_us": found["cpu_us"]})


@dataclass(frozen=True)
class Outcome:
    """What was seen around one kill; latencies in seconds."""

    quiet_s: float
    around_s: float
    failed: Sequence[str]
    calls: int


@dataclass
class SeveralKilledRow:
    """Latencies around a kill, against those of the rest of the run."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="several_killed",
            title=f"One of {SERVERS} servers killed under load of one Python client: latency",
            unit="s",
            better=Better.LESS,
            targets=(Target(AROUND, QUIET, MOST_TIMES),),
        )
    )
    _latest: Outcome | None = None

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Two readings of one kill."""
        return [Cell(AROUND, self._around), Cell(QUIET, self._quiet)]

    def _around(self, seconds: float) -> Sample:
        self._latest = kill(seconds)
        return Sample(self._latest.around_s, {"calls": self._latest.calls})

    def _quiet(self, seconds: float) -> Sample:
        return Sample((self._latest or kill(seconds)).quiet_s)


@dataclass
class SeveralFailedRow:
    """Calls that a kill costs."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="several_failed",
            title=f"One of {SERVERS} servers killed under load of one Python client: what it costs",
            unit="calls",
            better=Better.LESS,
            targets=(Target(FAILED, None, 0),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Servers and a kill of its own each time."""
        return [Cell(FAILED, _failed)]


def _failed(seconds: float) -> Sample:
    outcome = kill(seconds)
    return Sample(len(outcome.failed), {"calls": outcome.calls, "failed": list(outcome.failed)})


def kill(seconds: float) -> Outcome:
    """Kills one of the servers in the middle of a load that lasts some seconds longer than what is left out.

    Raises:
        StartFailed: If a server does not start.
        LoadFailed: If the calls end before their time.
    """
    lasts_s = seconds + 2 * (HALF_S + BESIDE_S)
    with ExitStack() as stack:
        endpoints = [_start(number) for number in range(SERVERS)]
        for endpoint in endpoints:
            stack.enter_context(endpoint.process)
        command = [sys.executable, "-m", "bench.load.several_calls", *_arguments(ONE_CLIENT, lasts_s, endpoints)]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as caller:
            assert caller.stdout is not None
            if caller.stdout.readline().strip() != WARM:
                raise LoadFailed("the calls ended before they began")
            time.sleep(lasts_s / 2)
            killed_s = time.monotonic()
            os.killpg(endpoints[-1].process.pid, signal.SIGKILL)
            found = json.loads(caller.stdout.read())
    around = [latency for began, latency in found["moments"] if abs(began - killed_s) <= HALF_S]
    quiet = [latency for began, latency in found["moments"] if abs(began - killed_s) > HALF_S + BESIDE_S]
    return Outcome(_p99(quiet), _p99(around), found["failed"], len(found["moments"]))


def _start(number: int) -> Endpoint:
    return alipes.start(repository(MODEL), name=f"alipes_several_{number}")


def _arguments(way: str, seconds: float, endpoints: Sequence[Endpoint]) -> list[object]:
    shape = ",".join(map(str, work(MODEL, GRPC).model.input_shape))
    return [way, MODEL, seconds, shape, *(f"127.0.0.1:{endpoint.grpc_port}" for endpoint in endpoints)]


def _p99(latencies: Sequence[float]) -> float:
    return sorted(latencies)[int(len(latencies) * 0.99)]
