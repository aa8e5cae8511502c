"""A forest of XGBoost, beside MLServer's runtime of it and beside a raw loop."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from bench.document import Document, v2_document
from bench.fleet import ALIPES, Fleet
from bench.grpc_document import GrpcDocument
from bench.load import own, wrk
from bench.load.engine_loops import ANSWER
from bench.load.h2load import Streams
from bench.load.tool import Measurement
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
GRPC_LABEL = "alipes, gRPC"
RAW_OF_GRPC = "raw XGBoost loop, batches of gRPC"

#: Loads a server for so many seconds.
Load = Callable[[float], Measurement]


@dataclass(frozen=True)
class ForestRow:
    """Rows of 500 trees in a second; the script `bench/apps/forest.py` trains them."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="xgboost",
            title=f"XGBoost, 500 trees, one row of {COLUMNS} features, HTTP JSON, {CONNECTIONS} connections",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(ALIPES, MLSERVER, 8), Target(ALIPES, RAW, 0.8), Target(GRPC_LABEL, RAW_OF_GRPC)),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """alipes over both protocols, each with a loop over its batches; MLServer where it is there."""
        python = python_with("xgboost", "trees")
        if python is None:
            fleet.skipped[FOREST] = advice("xgboost", "trees")
            return []
        folder = written_by(FOREST, python)
        engine = Engine("xgboost", folder / FOREST / "1" / "model.ubj", (COLUMNS,), python)
        document, asked = forest_questions(engine)
        endpoint = fleet.of_row(alipes.start(folder, "alipes_forest", python=python))
        mlserver = document_cell(Posted(MLSERVER, document, partial(_mlserver, engine.file)), fleet, CONNECTIONS)
        return [
            *_beside_loop(ALIPES, RAW, engine, endpoint, _over_http(endpoint, document)),
            *_beside_loop(GRPC_LABEL, RAW_OF_GRPC, engine, endpoint, _over_grpc(endpoint, asked)),
            *([mlserver] if mlserver is not None else []),
        ]


def forest_questions(engine: Engine) -> tuple[Document, GrpcDocument]:
    """A row for each protocol, and what XGBoost itself makes of it."""
    row = np.linspace(-1, 1, COLUMNS, dtype=np.float32)[None]
    expected = np.asarray(json.loads(run_loop(engine, ANSWER, str(engine.file), rows=row.tolist())))
    return v2_document(FOREST, FOREST, "input", row, expected), GrpcDocument(FOREST, "input", row, expected)


def _beside_loop(label: str, raw: str, engine: Engine, endpoint: Endpoint, load: Load) -> tuple[Cell, Cell]:
    batches = Batches(FOREST)
    return (
        Cell(label, lambda seconds: batches.served(endpoint, partial(load, seconds))),
        Cell(raw, partial(batches.raw, engine)),
    )


def _over_http(endpoint: Endpoint, document: Document) -> Load:
    document.check(endpoint.http_port)
    return lambda seconds: wrk.post(endpoint.http_port, document, CONNECTIONS, seconds)


def _over_grpc(endpoint: Endpoint, asked: GrpcDocument) -> Load:
    asked.check(endpoint.grpc_port)
    return lambda seconds: own.post(endpoint.grpc_port, asked, Streams(CONNECTIONS, 1), seconds, "grpc")[0]


def _mlserver(file: Path, fleet: Fleet, document: Document) -> Endpoint | None:
    return fleet.peer_of_row(
        "mlserver", "mlserver", lambda environment: start_mlserver(environment, FOREST, file, document)
    )
