"""`alipes perf_analyzer --shared-memory cuda`, with the stub of NVIDIA's driver on both sides, and a real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from support.command import Done, alipes_process
from support.gpu_memory import build_stub
from support.perf_models import add_perf_models
from support.python_models import add_python_model
from support.regions import ALLOWED, NO_GPUS
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

Serve = Callable[..., ServerProcess]

NOTES = """
class TritonPythonModel:
    def execute(self, requests):
        note("seen", given(requests[0]).tolist())
        return [answer(Y=given(request)) for request in requests]
"""
ON_GPU = ("--shared-memory", "cuda", "--output-shared-memory-size", "4096")


@pytest.fixture(scope="module", params=["stub", pytest.param("real", marks=pytest.mark.gpu)])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The driver's library, where it is the stub."""
    return build_stub(tmp_path_factory.mktemp("driver")) if request.param == "stub" else None


@pytest.fixture(scope="module")
def gpu(library: Path | None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process on a machine with a GPU."""
    notes = str(tmp_path_factory.mktemp("notes"))
    stub = {"LD_LIBRARY_PATH": str(library.parent), "GPU_STUB_DEVICES": "1"} if library else {}
    return {**stub, "NOTES": notes}


@pytest.fixture(scope="module")
def server(gpu: dict[str, str], tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    """A server with a GPU."""
    repository: Path = tmp_path_factory.mktemp("models")
    add_perf_models(repository)
    add_python_model(repository, "notes", NOTES, signature="X: FP32[2] -> Y: FP32[2]")
    return serve_module(repository, ALLOWED, environment=gpu)


def measure(server: ServerProcess, wire: str, *words: str, environment: dict[str, str], folder: Path) -> Done:
    command = ("perf_analyzer", "-i", wire, "-u", getattr(server, wire), *words, "--request-count", "40")
    return alipes_process(*command, environment=environment, folder=folder)


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_tensors_lie_on_the_gpu(server: ServerProcess, gpu: dict[str, str], wire: str, tmp_path: Path) -> None:
    before = objects()
    for words in (("-m", "mlp", "-b", "4"), ("-m", "identity", "--shape", "INPUT0:8", "--concurrency-range", "3")):
        done = measure(server, wire, *words, *ON_GPU, environment=gpu, folder=tmp_path)
        assert (done.code, done.err) == (0, "")
        assert "    Request count: 40\n" in done.out
    with urlopen(f"http://{server.http}/v2/cudasharedmemory/status", timeout=TIMEOUT_S) as left:
        assert json.loads(left.read()) == []
    assert objects() - before == set()


def test_what_lies_on_the_gpu_reaches_the_model(server: ServerProcess, gpu: dict[str, str], tmp_path: Path) -> None:
    for values in ([1.5, 2.5], [-3.0, 0.25]):
        (tmp_path / "data.json").write_text(json.dumps({"data": [{"X": values}]}))
        words = ("-m", "notes", "--input-data", "data.json", *ON_GPU)
        done = measure(server, "http", *words, environment=gpu, folder=tmp_path)
        assert (done.code, done.err) == (0, "")
        assert json.loads((Path(gpu["NOTES"]) / "seen").read_text()) == values


def test_a_machine_without_a_gpu_is_named(server: ServerProcess, tmp_path: Path) -> None:
    done = measure(server, "http", "-m", "mlp", *ON_GPU, environment=NO_GPUS, folder=tmp_path)
    assert done.code == 99
    assert "Unable to init infer data manager: no memory of a GPU: " in done.err
    assert "Traceback" not in done.err


def test_a_server_without_a_gpu_is_named(gpu: dict[str, str], tmp_path: Path, serve: Serve) -> None:
    before = objects()
    add_perf_models(tmp_path / "models")
    server = serve(tmp_path / "models", ALLOWED, environment=NO_GPUS)
    done = measure(server, "http", "-m", "mlp", *ON_GPU, environment=gpu, folder=tmp_path)
    assert done.code == 99
    assert "GPUs not supported" in done.err
    assert objects() - before == set()


def objects() -> set[str]:
    """Where the stub holds memory of GPUs."""
    return {path.name for path in Path("/dev/shm").iterdir() if "gpu" in path.name.lower()}
