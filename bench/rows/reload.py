"""A reload every second under full load: does it cost a request?"""

import http.client
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.fleet import Fleet
from bench.load import wrk
from bench.load.tool import LoadFailed, Measurement
from bench.models.repository import repository
from bench.paths import WORK
from bench.rows.load import RATE
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers import alipes
from bench.servers.endpoint import Endpoint
from bench.work import JSON, work

SMALL = "mlp"
CONNECTIONS = 64
QUIET = "nothing else"
RELOADED = "a reload every second"
INTERVAL_S = 1.0
#: What counts is a minute, whatever a cell's time is otherwise.
LASTS_S = 60.0
TIMEOUT_S = 30.0


@dataclass
class ReloadRow:
    """Rate without and with reloads. A request that fails fails the measurement, as a reload does."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="reload",
            title=f"HTTP JSON, {CONNECTIONS} connections, a reload every second for a minute, no request failed",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(RELOADED, QUIET),),
            once=True,
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The same load twice, each on a server of its own."""
        return [Cell(QUIET, lambda seconds: _run(seconds, reloads=False)), Cell(RELOADED, lambda seconds: _reloaded())]


def _reloaded() -> Sample:
    return _run(LASTS_S, reloads=True)


def _run(seconds: float, *, reloads: bool) -> Sample:
    folder = WORK / "reloaded"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(repository(SMALL), folder)
    endpoint = alipes.start(folder, "alipes_reload", flags=("--model-control-mode=explicit", f"--load-model={SMALL}"))
    with endpoint.process:
        endpoint.check(work(SMALL, JSON))
        if not reloads:
            return _sample(_load(endpoint, seconds), 0)
        with reloading(endpoint, folder / SMALL / "1") as done:
            measurement = _load(endpoint, seconds)
        return _sample(measurement, len(done))


def _load(endpoint: Endpoint, seconds: float) -> Measurement:
    return wrk.post(endpoint.http_port, work(SMALL, JSON), CONNECTIONS, seconds)


def _sample(measurement: Measurement, reloads: int) -> Sample:
    return Sample(measurement.rate, {**measurement.as_json(), "reloads": reloads})


@contextmanager
def reloading(endpoint: Endpoint, version: Path) -> Iterator[list[int]]:
    """Has a version loaded again every second; gives the answers to the load requests.

    Raises:
        LoadFailed: If one of them fails.
    """
    over = threading.Event()
    answers: list[int] = []

    def run() -> None:
        while not over.wait(INTERVAL_S):
            later = version.stat().st_mtime_ns + 10**9
            os.utime(version, ns=(later, later))
            answers.append(_ask_to_load(endpoint.http_port))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()
    failed = [answer for answer in answers if answer != http.client.OK]
    if failed or not answers:
        raise LoadFailed(f"{len(failed)} of {len(answers)} reloads failed: {failed[:3]}")


def _ask_to_load(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", f"/v2/repository/models/{SMALL}/load")
        return connection.getresponse().status
    finally:
        connection.close()
