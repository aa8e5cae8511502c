"""A file of TorchScript: the backend beside a `model.py` that makes the same call, and beside peers."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from bench.document import Document, v2_document
from bench.fleet import ALIPES, Fleet
from bench.grpc_document import GrpcDocument
from bench.load import own
from bench.load.engine_loops import ANSWER
from bench.load.h2load import Streams
from bench.models.python_models import SOURCES
from bench.models.scripts import written_by
from bench.rows.batches import Batches, Engine, run_loop
from bench.rows.contenders import LITSERVE, MOSEC, TORCHSERVE
from bench.rows.documents import Posted, Start, document_cell, measured_cell
from bench.rows.load import RATE
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers import alipes
from bench.servers.endpoint import Endpoint
from bench.servers.file_servers import start_torchserve
from bench.servers.interpreters import advice, python_with
from bench.servers.programs import Program

MLP = "mlp"
WIDTH = 64
CONNECTIONS = 64
CALL = "alipes, model.py with the same call"
#: As the peers are asked, by the same tool.
OVER_HTTP = "alipes, HTTP JSON"
#: The environment of `bench/peers` in which the peers have PyTorch.
WITH_TORCH = "torch"
#: Every framework has one thread.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
CONFIG = """\
backend: "python"
max_batch_size: 64
input [ { name: "x" data_type: TYPE_FP32 dims: [ 64 ] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
dynamic_batching { }
"""


@dataclass(frozen=True)
class TorchscriptRow:
    """Rows of a perceptron in a second; the script `bench/apps/mlp.py` saves it."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="torchscript",
            title=f"TorchScript perceptron, {CONNECTIONS} connections, gRPC (peers: HTTP JSON)",
            unit=RATE,
            better=Better.MORE,
            targets=(
                Target(ALIPES, CALL, 0.85),
                Target(ALIPES, LITSERVE, 20),
                Target(ALIPES, MOSEC, 3),
                Target(OVER_HTTP, MOSEC, 3),
                Target(ALIPES, TORCHSERVE),
            ),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """alipes twice, and the peers that are there; the peers have no gRPC of their own for this."""
        python = python_with("torch", "torch")
        if python is None:
            fleet.skipped["torchscript"] = advice("torch", "torch")
            return []
        folder = written_by(MLP, python)
        file = folder / MLP / "1" / "model.pt"
        asked, document = questions(Engine("torchscript", file, (WIDTH,), python))
        ours = _start(folder, python, fleet)
        with_call = _start(call_repository(folder), python, fleet)
        theirs = (
            Posted(LITSERVE, document, _with_torch("litserve", file)),
            Posted(MOSEC, document, _with_torch("mosec", file)),
            Posted(TORCHSERVE, _for_torchserve(document), partial(_torchserve, file)),
        )
        peers = [document_cell(one, fleet, CONNECTIONS) for one in theirs]
        return [
            _asked_by_grpc(ALIPES, ours, asked),
            _asked_by_grpc(CALL, with_call, asked),
            _asked_by_http(ours, asked),
            *(cell for cell in peers if cell is not None),
        ]


def questions(engine: Engine) -> tuple[GrpcDocument, Document]:
    """A row for each protocol, and what PyTorch itself makes of it."""
    row = np.linspace(-1, 1, WIDTH, dtype=np.float32)
    expected = json.loads(run_loop(engine, ANSWER, str(engine.file), rows=[row.tolist()]))
    numbers = tuple(expected[0])
    return (
        GrpcDocument(MLP, "x", row[None], np.asarray(expected)),
        Document("torchscript", "/mlp", {"x": row.tolist()}, numbers),
    )


def call_repository(models: Path) -> Path:
    """The same file beside a `model.py`, in a repository of its own."""
    folder = models.parent / "call"
    version = folder / MLP / "1"
    version.mkdir(parents=True, exist_ok=True)
    shutil.copy(models / MLP / "1" / "model.pt", version)
    shutil.copy(SOURCES / "torch_call.py", version / "model.py")
    (version.parent / "config.pbtxt").write_text(CONFIG)
    return folder


def _start(folder: Path, python: Path, fleet: Fleet) -> Endpoint:
    name = f"alipes_torchscript_{folder.name}"
    return fleet.of_row(alipes.start(folder, name, environment=ONE_THREAD, python=python))


def _asked_by_grpc(label: str, endpoint: Endpoint, asked: GrpcDocument) -> Cell:
    asked.check(endpoint.grpc_port)
    batches = Batches(MLP)

    def measure(seconds: float) -> Sample:
        streams = Streams(CONNECTIONS, 1, tool_threads=2)
        return batches.served(endpoint, lambda: own.post(endpoint.grpc_port, asked, streams, seconds, "grpc")[0])

    return Cell(label, measure)


def _asked_by_http(endpoint: Endpoint, asked: GrpcDocument) -> Cell:
    document = v2_document("torchscript_http", MLP, "x", asked.row, asked.expected)
    return measured_cell(OVER_HTTP, endpoint, document, CONNECTIONS)


def _with_torch(peer: str, file: Path) -> Start:
    program = Program(peer, MLP, WITH_TORCH, {**ONE_THREAD, "MODEL_PATH": str(file)})

    def start(fleet: Fleet, document: Document) -> Endpoint | None:
        return fleet.peer_of_row(peer, program.environment, lambda folder: program.start(folder, document))

    return start


def _for_torchserve(document: Document) -> Document:
    return Document("torchserve", "/predictions/mlp", document.content, document.expected)


def _torchserve(file: Path, fleet: Fleet, document: Document) -> Endpoint | None:
    return fleet.peer_of_row("torchserve", WITH_TORCH, lambda folder: start_torchserve(folder, file, document))
