"""How long a start takes, and what a server holds in memory while it answers millions of requests."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.fleet import Fleet
from bench.load import wrk
from bench.models.repository import repository
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers import alipes
from bench.work import JSON, work

START_BOUND_S = 0.5
MEMORY_BOUND_MB = 150.0
#: What counts as flat, in megabytes between the first tenth of the requests and the last.
GROWTH_BOUND_MB = 3.0
MEGABYTE = 1e6
CONNECTIONS = 64
PARTS = 10
#: A piece of load between two looks at the count.
SLICE_S = 0.3
AFTER = "resident after the load"
GROWTH = "growth over the load"


@dataclass
class StartRow:
    """Seconds from the command to ready, one small model."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="start",
            title="Start to ready, one small model",
            unit="s",
            better=Better.LESS,
            targets=(Target("alipes", None, START_BOUND_S),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """One cell: a start of its own each time."""
        return [Cell("alipes", _start)]


def _start(seconds: float) -> Sample:
    begin = time.perf_counter()
    endpoint = alipes.start(repository("mlp"), name="alipes_start")
    elapsed_s = time.perf_counter() - begin
    with endpoint.process:
        return Sample(elapsed_s, {"resident_mb": endpoint.process.resident_bytes() / MEGABYTE})


@dataclass
class MemoryRow:
    """Resident memory while requests are answered, and how much of it is new at the end."""

    #: Requests to answer.
    requests: int
    facts: Facts = field(init=False)
    _resident_mb: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Writes the number of requests into the title."""
        self.facts = Facts(
            name="memory",
            title=f"Resident memory, one small model, {self.requests:,} requests",
            unit="MB",
            better=Better.LESS,
            targets=(Target(AFTER, None, MEMORY_BOUND_MB), Target(GROWTH, None, GROWTH_BOUND_MB)),
            once=True,
        )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Two readings of one load."""
        return [Cell(AFTER, self._load), Cell(GROWTH, self._growth)]

    def _load(self, seconds: float) -> Sample:
        endpoint = alipes.start(repository("mlp"), name="alipes_memory")
        self._resident_mb = []
        with endpoint.process:
            answered = 0
            for part in range(1, PARTS + 1):
                while answered < self.requests * part / PARTS:
                    answered += wrk.post(endpoint.http_port, work("mlp", JSON), CONNECTIONS, SLICE_S).requests
                self._resident_mb.append(endpoint.process.resident_bytes() / MEGABYTE)
        return Sample(self._resident_mb[-1], {"requests": answered, "resident_mb": self._resident_mb})

    def _growth(self, seconds: float) -> Sample:
        return Sample(self._resident_mb[-1] - self._resident_mb[0])
