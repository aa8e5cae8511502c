"""A forest of XGBoost, beside MLServer's runtime of it and beside a raw loop."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from bench.document import Document, v2_document
from bench.fleet import ALIPES, Fleet
from bench.load import wrk
from bench.load.engine_loops import ANSWER
from bench.models.scripts import written_by
from bench.rows.batches import Batches, Engine, run_loop
from bench.rows.contenders import MLSERVER
from bench.rows.documents import Posted, document_cell
from bench.rows.load import RATE
from bench.rows.row import Better, Cell, Facts, Target
from bench.servers import alipes
from bench.servers.endpoint import Endpoint
from bench.servers.file_servers import start_mlserver
from bench.servers.interpreters import advice, python_with

FOREST = "forest"
#: Columns of a row.
COLUMNS = 32
CONNECTIONS = 64
RAW = "raw XGBoost loop"


@dataclass(frozen=True)
class ForestRow:
    """Rows of 500 trees in a second; the script `bench/apps/forest.py` trains them."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="xgboost",
            title=f"XGBoost, 500 trees, one row of {COLUMNS} features, HTTP JSON, {CONNECTIONS} connections",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(ALIPES, MLSERVER, 8), Target(ALIPES, RAW, 0.8)),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """alipes, which reads all settings from the file; its raw loop; MLServer where it is there."""
        python = python_with("xgboost", "trees")
        if python is None:
            fleet.skipped[FOREST] = advice("xgboost", "trees")
            return []
        folder = written_by(FOREST, python)
        engine = Engine("xgboost", folder / FOREST / "1" / "model.ubj", (COLUMNS,), python)
        document = forest_document(engine)
        endpoint = fleet.of_row(alipes.start(folder, "alipes_forest", python=python))
        document.check(endpoint.http_port)
        batches = Batches(FOREST)
        load = partial(wrk.post, endpoint.http_port, document, CONNECTIONS)
        theirs = Posted(MLSERVER, document, partial(_mlserver, engine.file))
        peer = document_cell(theirs, fleet, CONNECTIONS)
        return [
            Cell(ALIPES, lambda seconds: batches.served(endpoint, partial(load, seconds))),
            Cell(RAW, partial(batches.raw, engine)),
            *([] if peer is None else [peer]),
        ]


def forest_document(engine: Engine) -> Document:
    """A row for both servers, and what XGBoost itself makes of it."""
    row = np.linspace(-1, 1, COLUMNS, dtype=np.float32)[None]
    expected = json.loads(run_loop(engine, ANSWER, str(engine.file), rows=row.tolist()))
    return v2_document(FOREST, FOREST, "input", row, np.asarray(expected))


def _mlserver(file: Path, fleet: Fleet, document: Document) -> Endpoint | None:
    return fleet.peer_of_row(
        "mlserver", "mlserver", lambda environment: start_mlserver(environment, FOREST, file, document)
    )
