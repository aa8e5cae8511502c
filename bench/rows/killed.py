"""A worker process killed under load: when do answers come again, and what became of the requests?"""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.fleet import ALIPES, Fleet
from bench.load.ledger import Entry, Ledger
from bench.models.repository import repository
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers import alipes
from bench.work import BINARY, work

MODEL = "mortal"
TITLE = "Worker killed under load, 16 connections"
CONNECTIONS = 16
RECOVERY_BOUND_S = 1.0
#: The model takes one request at a time, so only one can be in execution.
FAILED_BOUND = 1
FAILED = "failed"
LOST = "without an answer"


@dataclass(frozen=True)
class Outcome:
    """What was seen around one kill."""

    #: From the signal to the first answer of the next worker.
    outage_s: float
    #: What the next worker's model itself took to load.
    load_s: float
    entries: Sequence[Entry]

    @property
    def recovery_s(self) -> float:
        """The outage without the model's own share."""
        return self.outage_s - self.load_s

    @property
    def failed(self) -> list[Entry]:
        """Requests that were answered with an error."""
        return [entry for entry in self.entries if entry.status is not None and not entry.succeeded]

    @property
    def lost(self) -> list[Entry]:
        """Requests that were not answered."""
        return [entry for entry in self.entries if entry.status is None]

    def as_json(self) -> dict[str, object]:
        """The figures, for the raw data."""
        return {
            "outage_s": self.outage_s,
            "load_s": self.load_s,
            "requests": len(self.entries),
            "failed": [entry.text for entry in self.failed],
            "lost": [entry.text for entry in self.lost],
        }


@dataclass
class KilledRow:
    """Seconds until a new worker answers."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="killed",
            title=f"{TITLE}: to the first new answer, less the model's own load",
            unit="s",
            better=Better.LESS,
            targets=(Target(ALIPES, None, RECOVERY_BOUND_S),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """One cell: a server and a kill of its own each time."""
        return [Cell(ALIPES, _recovery)]


def _recovery(seconds: float) -> Sample:
    outcome = kill(seconds)
    return Sample(outcome.recovery_s, outcome.as_json())


@dataclass
class KilledRequestsRow:
    """Requests that the kill costs."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="killed_requests",
            title=f"{TITLE}: what it costs",
            unit="requests",
            better=Better.LESS,
            targets=(Target(FAILED, None, FAILED_BOUND), Target(LOST, None, 0)),
        )
    )
    _latest: Outcome | None = None

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Two readings of one kill."""
        return [Cell(FAILED, self._failed), Cell(LOST, self._lost)]

    def _failed(self, seconds: float) -> Sample:
        self._latest = kill(seconds)
        return Sample(len(self._latest.failed), self._latest.as_json())

    def _lost(self, seconds: float) -> Sample:
        return Sample(len(self._latest.lost) if self._latest else 0)


def kill(seconds: float) -> Outcome:
    """Kills the worker in the middle of a load of some seconds.

    Raises:
        StartFailed: If the server does not start.
        LoadFailed: If no answer comes any more.
    """
    endpoint = alipes.start(repository(MODEL), name=f"alipes_{MODEL}")
    with endpoint.process, Ledger(endpoint.http_port, work(MODEL, BINARY), CONNECTIONS) as ledger:
        victim = ledger.wait_for(lambda entry: entry.succeeded).values[0]
        time.sleep(seconds / 2)
        # Before the signal, since others may run between that and a look at the clock.
        killed_s = time.monotonic()
        os.kill(int(victim), signal.SIGKILL)
        first = ledger.wait_for(lambda entry: entry.succeeded and entry.values[0] != victim)
        time.sleep(seconds / 2)
    return Outcome(first.ended_s - killed_s, first.values[1], ledger.entries)
