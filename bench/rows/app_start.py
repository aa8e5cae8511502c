"""How long it takes from the command to the first answer of an app that imports numpy."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from bench.fleet import ALIPES, Fleet
from bench.rows.contenders import LITSERVE
from bench.rows.functions import score_document
from bench.rows.row import CPU_US, Better, Cell, Facts, Sample, Target
from bench.servers.endpoint import Endpoint
from bench.servers.programs import Program, start_app

RELOADING = "alipes, --reload"
BOUND = 0.4
APP = "score"


@dataclass(frozen=True)
class AppStartRow:
    """Seconds to the first answer; a start of its own each time."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="app_start",
            title="First answer of an app that imports numpy",
            unit="s",
            better=Better.LESS,
            targets=(Target(ALIPES, LITSERVE, BOUND), Target(RELOADING, LITSERVE, BOUND)),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """alipes in both ways, and LitServe where it is there."""
        document = score_document()
        cells = [
            Cell(ALIPES, partial(_first_answer, lambda: start_app(APP, document))),
            Cell(RELOADING, partial(_first_answer, lambda: start_app(APP, document, ["--reload"]))),
        ]
        theirs = Program("litserve", APP)
        environment = fleet.environment(theirs.peer, theirs.environment)
        if environment is not None:
            cells.append(Cell(LITSERVE, partial(_first_answer, lambda: theirs.start(environment, document))))
        return cells


def _first_answer(start: Callable[[], Endpoint], _seconds: float) -> Sample:
    begin = time.perf_counter()
    endpoint = start()
    elapsed_s = time.perf_counter() - begin
    with endpoint.process:
        return Sample(elapsed_s, {CPU_US: endpoint.process.cpu_seconds() * 1e6})
