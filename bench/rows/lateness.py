"""How late an open loop sends, beside a bare timer loop that waits for the same moments and sends nothing."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from bench.fleet import Fleet
from bench.load import own, timer
from bench.rows.row import Better, Cell, Facts, Row, Sample, Target
from bench.rows.testers import OWN, Closed
from bench.servers import probe
from bench.servers.endpoint import Endpoint
from bench.work import GRPC, JSON, Work

BESIDE = "bare timer loop, another load beside it"
ALONE = "bare timer loop, nothing beside it"
#: What is measured first: the rate of a closed loop, half of which is asked for.
CLOSED_S = 1.5
#: How much longer the other load lasts than the timer loop beside it.
LONGER_S = 1.0
#: How often the server is asked whether that load has begun.
LOOK_S = 0.02


def lateness_rows() -> list[Row]:
    """A row for each protocol."""
    return [LatenessRow(_facts("http"), JSON), LatenessRow(_facts("grpc"), GRPC)]


def _facts(wire: str) -> Facts:
    return Facts(
        f"lateness_{wire}",
        f"Open loop over {'gRPC' if wire == 'grpc' else 'HTTP'} at half of a closed loop's rate: how late it sends",
        "µs, 99th percentile",
        Better.LESS,
        (Target(OWN, BESIDE, 1.5), Target(OWN, ALONE)),
    )


@dataclass(frozen=True)
class LatenessRow:
    """The engine, and the timer loop while another engine loads the same server at the same rate, or nothing does."""

    facts: Facts
    form: str

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The three in turn, at one rate."""
        closed = Closed.to(fleet, self.form)
        if closed is None:
            return []
        seen, _ = closed.run(CLOSED_S)
        load = Load(closed.endpoint, closed.piece, closed.wire, round(seen.rate / 2))
        return [
            Cell(OWN, lambda seconds: _sample(load.run(seconds))),
            Cell(BESIDE, lambda seconds: _beside(load, seconds)),
            Cell(ALONE, lambda seconds: _sample(timer.late(load.rate, seconds))),
        ]


@dataclass(frozen=True)
class Load:
    """An open loop to a server."""

    endpoint: Endpoint
    piece: Work
    wire: str
    #: Requests in a second.
    rate: float

    def run(self, seconds: float) -> dict[str, float]:
        """Loads the server.

        Raises:
            LoadFailed: If a request failed.
        """
        return own.pace(self.endpoint.port(self.piece), self.piece, self.rate, seconds, self.wire)

    @contextmanager
    def beside(self, seconds: float) -> Iterator[None]:
        """Loads the server while the block runs, which takes so many seconds.

        Raises:
            LoadFailed: If a request failed.
        """
        with ThreadPoolExecutor(1) as pool:
            before = self._answered()
            running = pool.submit(self.run, seconds + LONGER_S)
            while self._answered() == before and not running.done():
                time.sleep(LOOK_S)
            yield
            running.result()

    def _answered(self) -> int:
        path = f"/v2/models/{self.piece.model.name}/stats"
        models = probe.get_json(self.endpoint.http_port, path)["model_stats"]
        return int(models[0]["inference_stats"]["success"]["count"])


def _beside(load: Load, seconds: float) -> Sample:
    with load.beside(seconds):
        seen = timer.late(load.rate, seconds)
    return _sample(seen)


def _sample(seen: dict[str, float]) -> Sample:
    return Sample(seen["late_p99_us"], dict(seen))
