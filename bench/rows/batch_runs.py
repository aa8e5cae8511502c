"""Batch runs: n servers with k clients each, beside what the servers can do, and beside the loop of a talk."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from bench.fleet import Fleet
from bench.load import own
from bench.load.calls import figures
from bench.load.h2load import Streams
from bench.models.repository import MODELS, reference_answer, repository
from bench.paths import WORK
from bench.rows.row import Better, Cell, Facts, Row, Sample, Target
from bench.servers import alipes
from bench.servers.endpoint import Endpoint
from bench.work import FULL, work

SERVERS = 2
CLIENTS = 4
RUN = f"alipes batch, {SERVERS} servers x {CLIENTS} clients"
SATURATED = f"the {SERVERS} servers, saturated"
TALK = "the loop of a talk, with tritonclient"
ROWS = "rows/s"
#: A server never waits for its load.
CALLERS = Streams(4, 1)
#: The loop of the talk holds all of its answers, and is far from what the servers can do.
TALK_SHARE = 0.1


def batch_rows() -> list[Row]:
    """The rows, in the order of the table."""
    return [
        BatchRow(_facts("batch_network", "a convolution net", 0.95, None), "conv"),
        BatchRow(_facts("batch_small", "a small model", 0.6, 4.0), "mlp"),
    ]


def _facts(name: str, what: str, share: float, times: float | None) -> Facts:
    targets = [Target(RUN, SATURATED, share)]
    if times is not None:
        targets.append(Target(RUN, TALK, times))
    return Facts(name, f"Batch run over many files, {what}", ROWS, Better.MORE, tuple(targets))


@dataclass
class BatchRow:
    """Rows of one model."""

    facts: Facts
    model: str
    _saturated: float = field(default=0.0)

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The load first: it says how many rows take the seconds."""
        endpoints = [
            fleet.of_row(alipes.start(repository(self.model), name=f"alipes_{self.facts.name}_{number}"))
            for number in range(SERVERS)
        ]
        for endpoint in endpoints:
            endpoint.check(work(self.model, FULL))
        cells = [
            Cell(SATURATED, lambda seconds: self._load(endpoints, seconds)),
            Cell(RUN, lambda seconds: self._loop("batch", endpoints, self._saturated * seconds)),
        ]
        if any(target.against == TALK for target in self.facts.targets):
            cells.append(
                Cell(TALK, lambda seconds: self._loop("talk", endpoints, self._saturated * seconds * TALK_SHARE))
            )
        return cells

    def _load(self, endpoints: Sequence[Endpoint], seconds: float) -> Sample:
        full = work(self.model, FULL)
        with ThreadPoolExecutor(SERVERS) as together:
            found = list(
                together.map(lambda one: own.post(one.http_port, full, CALLERS, seconds, "http")[0], endpoints)
            )
        self._saturated = sum(one.rate for one in found) * MODELS[self.model].max_batch_size
        return Sample(self._saturated, {"p50_us": [one.p50_us for one in found]})

    def _loop(self, how: str, endpoints: Sequence[Endpoint], rows: float) -> Sample:
        row, answer = WORK / f"{self.model}-row.npy", WORK / f"{self.model}-answer.npy"
        np.save(row, MODELS[self.model].row())
        np.save(answer, reference_answer(MODELS[self.model]))
        urls = [f"127.0.0.1:{endpoint.grpc_port}" for endpoint in endpoints]
        found = figures("bench.load.batch_loops", [how, self.model, int(rows), CLIENTS, row, answer, *urls], 300.0)
        return Sample(found["rate"], found)
