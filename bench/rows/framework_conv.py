"""The compute-bound convolution net on the engines of other frameworks, each beside a raw loop over it."""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.fleet import Fleet
from bench.load import h2load
from bench.load.h2load import Streams
from bench.load.tool import Measurement
from bench.load.wrk import Request
from bench.models.repository import MODELS, repository
from bench.rows.batches import Batches, Engine
from bench.rows.conv import CONNECTIONS
from bench.rows.row import Better, Cell, Facts, Row, Target
from bench.servers import alipes
from bench.servers.endpoint import Endpoint
from bench.servers.interpreters import advice, python_with
from bench.servers.process import StartFailed
from bench.work import GRPC, work

CONV = "conv"
SCRIPT = Path(__file__).parents[1] / "models" / "torch" / "convolution.py"
#: Every framework has one thread, as its raw loop.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
BOUND = 0.95


@dataclass(frozen=True)
class Served:
    """How a framework has the net."""

    #: Kind of its raw loop.
    kind: str
    title: str
    backend: str
    #: What is imported, and the gate's stage that has it.
    package: str
    stage: str
    file: str
    #: Writes the file into a folder, with an interpreter that has the framework.
    write: Callable[[Path, Path], None]


@dataclass(frozen=True)
class FrameworkConvRow:
    """Rows of the net in a second."""

    served: Served

    @property
    def facts(self) -> Facts:
        """What it is."""
        title = f"Compute-bound convolution net in {self.served.title}, gRPC, {CONNECTIONS} connections"
        targets = (Target("alipes", self._raw, BOUND),)
        return Facts(f"conv_{self.served.kind}", title, "requests/s", Better.MORE, targets)

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """alipes first, as the loop repeats its batches; none where the framework is not there."""
        served = self.served
        python = python_with(served.package, served.stage)
        if python is None:
            fleet.skipped[self.facts.name] = advice(served.package, served.stage)
            return []
        folder = framework_repository(served, python)
        name = f"alipes_{self.facts.name}"
        endpoint = fleet.of_row(alipes.start(folder, name, environment=ONE_THREAD, python=python))
        piece = work(CONV, GRPC)
        answer_bytes = endpoint.check(piece)
        batches = Batches(CONV)
        engine = Engine(served.kind, folder / CONV / "1" / served.file, MODELS[CONV].input_dims, python)
        load = partial(_load, endpoint, piece, answer_bytes)
        return [
            Cell("alipes", lambda seconds: batches.served(endpoint, partial(load, seconds))),
            Cell(self._raw, partial(batches.raw, engine)),
        ]

    @property
    def _raw(self) -> str:
        return f"raw loop of {self.served.title}"


def framework_conv_rows() -> list[Row]:
    """A row for each framework, in the order of the table."""
    torch = ("pytorch", "torch", "torch")
    return [
        FrameworkConvRow(Served("torchscript", "TorchScript", *torch, "model.pt", _write_torch)),
        FrameworkConvRow(Served("torchexport", "torch.export", *torch, "model.pt2", _write_torch)),
        FrameworkConvRow(Served("openvino", "OpenVINO", "openvino", "openvino", "openvino", "model.onnx", _write_onnx)),
    ]


def framework_repository(served: Served, python: Path) -> Path:
    """A repository with the net alone, under its name; written anew.

    Raises:
        StartFailed: If the framework cannot write it.
    """
    folder = repository().parent / f"conv_{served.kind}"
    shutil.rmtree(folder, ignore_errors=True)
    version = folder / CONV / "1"
    version.mkdir(parents=True)
    served.write(version, python)
    # The other file of the same script would be found first.
    for other in version.iterdir():
        if other.name != served.file:
            other.unlink()
    (version.parent / "config.pbtxt").write_text(MODELS[CONV].config_text(served.backend))
    return folder


def _onnx() -> Path:
    return repository() / CONV / "1" / "model.onnx"


def _write_torch(version: Path, python: Path) -> None:
    command = [str(python), str(SCRIPT), str(_onnx()), str(version)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise StartFailed(f"the net cannot be saved for PyTorch:\n{done.stderr[-2000:]}")


def _write_onnx(version: Path, python: Path) -> None:
    shutil.copy(_onnx(), version)


def _load(endpoint: Endpoint, piece: Request, answer_bytes: int, seconds: float) -> Measurement:
    streams = Streams(CONNECTIONS, 1)
    return h2load.post(endpoint.grpc_port, piece, streams, seconds, answer_bytes, latency=False)
