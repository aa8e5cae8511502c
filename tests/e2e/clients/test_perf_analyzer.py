"""The real perf_analyzer, unmodified: it loads both endpoints in every way it knows, and finds all that it asks for."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from support.checkout import ROOT
from support.models import add_model
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.regions import ALLOWED
from support.server import ServerProcess

FOLDER = ROOT / ".venv-clients" / "perf_analyzer"
BINARY = FOLDER / "bin" / "perf_analyzer"

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not BINARY.exists(), reason="perf_analyzer is not there: `make clients` brings it"),
    pytest.mark.xdist_group("perf_analyzer"),
]

Serve = Callable[..., ServerProcess]

# Short windows, of which any is good enough: what is tested is that it works, not how fast.
QUICK = ("--measurement-mode=count_windows", "--measurement-request-count=20", "-s", "100000", "-r", "3")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    add_python_model(repository, "tells", REPORTS, signature="X: INT32[3] -> Y: INT32[1]", config=DECOUPLED)
    return serve_module(repository, ALLOWED)


def analyze(server: ServerProcess, endpoint: str, *arguments: str, model: str = "double") -> str:
    """What a run writes. It has to end well."""
    address = server.http if endpoint == "http" else server.grpc
    command = [str(BINARY), "-m", model, "-i", endpoint, "-u", address, *QUICK, *arguments]
    ran = subprocess.run(
        command,
        env=os.environ | {"LD_LIBRARY_PATH": str(FOLDER / "lib")},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.mark.parametrize(
    ("endpoint", "arguments"),
    [
        ("http", ("--concurrency-range", "2")),
        ("http", ("--concurrency-range", "4", "-a", "-b", "3")),
        ("http", ("--request-rate-range", "100", "--input-tensor-format", "json", "--output-tensor-format", "json")),
        ("grpc", ("--concurrency-range", "2")),
        ("grpc", ("--concurrency-range", "4", "-a", "-b", "3")),
        ("grpc", ("--concurrency-range", "2", "-a", "--streaming")),
        ("grpc", ("--concurrency-range", "2", "--grpc-compression-algorithm", "gzip")),
        ("grpc", ("--request-rate-range", "100", "--request-distribution", "poisson", "-a")),
    ],
    ids=lambda value: "_".join(value).replace("--", "") if isinstance(value, tuple) else value,
)
def test_a_load_is_measured_to_the_end(server: ServerProcess, endpoint: str, arguments: tuple[str, ...]) -> None:
    written = analyze(server, endpoint, *arguments)
    assert "Throughput:" in written
    assert "Server:" in written  # the statistics of the server were found and made sense
    assert "Inference count:" in written


@pytest.fixture
def alone() -> Iterator[None]:
    """A lock: no other perf_analyzer uses shared memory meanwhile, since all of them name their objects alike."""
    folder = os.open("/dev/shm", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@pytest.mark.timeout(300)  # others may be first
@pytest.mark.parametrize("endpoint", ["http", "grpc"])
def test_tensors_in_shared_memory_are_measured_to_the_end(server: ServerProcess, alone: None, endpoint: str) -> None:
    shared = ("--shared-memory", "system", "--output-shared-memory-size", "4096")
    written = analyze(server, endpoint, *shared, "--concurrency-range", "2")
    assert "Throughput:" in written
    with urlopen(f"http://{server.http}/v2/systemsharedmemory/status", timeout=60) as left:
        assert json.loads(left.read()) == []


def test_a_decoupled_model_streams(server: ServerProcess) -> None:
    written = analyze(server, "grpc", "--streaming", "-a", model="tells")
    assert "Response Throughput:" in written


def test_reports_have_the_parts_of_the_server_s_time(server: ServerProcess, tmp_path: Path) -> None:
    report, export = tmp_path / "report.csv", tmp_path / "export.json"
    data = {"data": [{"X": [1.0, 2.0]}, {"X": [3.0, 4.0]}], "validation_data": [{"Y": [2.0, 4.0]}, {"Y": [6.0, 8.0]}]}
    (tmp_path / "data.json").write_text(json.dumps(data))
    analyze(
        server,
        "http",
        "--input-data",
        str(tmp_path / "data.json"),
        "-f",
        str(report),
        "--profile-export-file",
        str(export),
        "--verbose-csv",
    )
    [row] = csv.DictReader(report.read_text().splitlines())
    assert float(row["Inferences/Second"]) > 0
    assert float(row["Server Compute Infer"]) >= 0
    assert export.exists()


def test_it_understands_error_messages(server: ServerProcess) -> None:
    with pytest.raises(AssertionError, match="unknown model: 'nobody' is not found"):
        analyze(server, "http", model="nobody")
