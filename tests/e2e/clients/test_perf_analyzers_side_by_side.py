"""The real perf_analyzer and ours, with the same command lines, on the same server: the same words and statuses."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.checkout import ROOT
from support.command import Done, alipes
from support.models import add_model
from support.perf_models import ENSEMBLE, add_perf_models, mlp
from support.perf_runs import lines, without_figures
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess

FOLDER = ROOT / ".venv-clients" / "perf_analyzer"
BINARY = FOLDER / "bin" / "perf_analyzer"

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not BINARY.exists(), reason="perf_analyzer is not there: `make clients` brings it"),
    pytest.mark.xdist_group("perf_analyzer"),
]

Serve = Callable[..., ServerProcess]

# Any window is good enough: what is compared is not how fast a machine is.
QUICK = ("-p", "300", "-r", "3", "-s", "1000000")
_DECIMALS = re.compile(r"(Request Rate: \d+)\.00\b")
BUSY = ("[WARNING] Perf Analyzer was not able", "Avg send request rate")
X = [number / 64 for number in range(64)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("both") / "models"
    add_perf_models(repository)
    (repository / "both" / "1").mkdir(parents=True)
    (repository / "both" / "config.pbtxt").write_text(ENSEMBLE)
    add_model(repository, "cached", mlp(), config="max_batch_size: 8\nresponse_cache { enable: true }\n")
    add_python_model(repository, "tells", REPORTS, signature="X: INT32[3] -> Y: INT32[1]", config=DECOUPLED)
    stateful = "max_batch_size: 4\nsequence_batching { }\n"
    add_python_model(repository, "stateful", signature="X: INT32[1] -> Y: INT32[1]", config=stateful)
    yield serve_module(repository, "--cache-config=local,size=1048576")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that command lines name."""
    documents = {
        "good": {"data": [{"x": X}, {"x": {"content": X, "shape": [64]}}]},
        "short": {"data": [{"x": [1.0, 2.0]}]},
        "streams": {"data": [[{"x": X}], [{"x": X}]]},
        "unknown": {"data": [{"z": [1.0]}]},
        "shapeless": {"data": [{"INPUT0": [1.0, 2.0]}]},
        "nothing": {"dat": []},
        "wrong": {"data": [{"x": X}], "validation_data": [{"y": [0.25]}]},
        "uneven": {"data": [{"x": X}], "validation_data": [{"y": [0.25]}] * 2},
    }
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "x").write_bytes(bytes(256))
    (tmp_path / "intervals").write_text("2000\n4000\n")
    return tmp_path


def both(server: ServerProcess, folder: Path, text: str) -> tuple[Done, Done]:
    """What the original and ours write for the same words."""
    names = {"HTTP": server.http, "GRPC": server.grpc, "METRICS": f"{server.metrics}/metrics"}
    words = [names.get(word, word) for word in (*shlex.split(text), *QUICK)]
    ran = subprocess.run(
        [str(BINARY), *words],
        env=os.environ | {"LD_LIBRARY_PATH": str(FOLDER / "lib")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    real = Done(ran.returncode, ran.stdout, ran.stderr.replace(str(BINARY), "perf_analyzer"))
    ours = folder / "ours"
    ours.mkdir()
    for file in folder.iterdir():
        if file != ours:
            (ours / file.name).symlink_to(file)
    for table in folder.glob("*.csv"):
        (ours / table.name).unlink()
    return real, alipes("perf_analyzer", *words, folder=ours)


def heads(folder: Path) -> dict[str, str]:
    """The heading of each table."""
    return {table.name: table.read_text(encoding="utf-8").splitlines()[0] for table in folder.glob("*.csv")}


@pytest.mark.parametrize(
    "text",
    [
        "-m mlp -u HTTP",
        "-m mlp -u HTTP -v --verbose-csv -f a.csv",
        "-m mlp -i grpc -u GRPC -v --percentile 97 --verbose-csv -f a.csv",
        "-m mlp -i grpc -u GRPC -a --concurrency-range 2:4:2 -b 3",
        "-m mlp -u HTTP --measurement-mode count_windows --measurement-request-count 20",
        "-m mlp -u HTTP --request-rate-range 20:40:20 -f a.csv",
        "-m mlp -u HTTP --request-rate-range 50 --request-distribution poisson --percentile 90",
        "-m mlp -u HTTP --request-intervals intervals -p 600",
        "-m mlp -u HTTP --binary-search -l 60000 --concurrency-range 1:4",
        "-m mlp -u HTTP --concurrency-range 1:3 -l 60000",
        "-m mlp -u HTTP --concurrency-range 2:1",
        "-m mlp -u HTTP --input-data good.json -b 2",
        "-m mlp -u HTTP --input-data streams.json",
        "-m mlp -u HTTP --input-data one",
        "-m mlp -u HTTP -z",
        "-m mlp -u HTTP -t 2",
        "-m mlp -u HTTP --input-tensor-format json --output-tensor-format json",
        "-m both -i grpc -u GRPC -f a.csv",
        "-m cached -u HTTP -f a.csv",
        "-m tells -i grpc -u GRPC --streaming -a -f a.csv",
        "-m identity -i grpc -u GRPC --streaming --shape INPUT0:4",
        "-m stateful -i grpc -u GRPC --concurrency-range 2",
        "-m stateful -u HTTP -v",
        "-m stateful -i grpc -u GRPC --request-rate-range 50",
        "-m mlp -u HTTP --collect-metrics --metrics-url METRICS --verbose-csv -f a.csv",
    ],
)
def test_both_measure_alike(text: str, server: ServerProcess, folder: Path) -> None:
    real, ours = both(server, folder, text)
    assert (real.code, ours.code) == (0, 0), real.err + ours.err
    assert words(ours) == words(real)
    assert heads(folder / "ours") == heads(folder)


def words(done: Done) -> list[str]:
    """The text without figures, and without what is there on a busy machine alone: lines, and decimals of rates."""
    return [
        _DECIMALS.sub(r"\1", line)
        for line in without_figures(lines(done.out))
        if not any(word in line for word in BUSY)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-m mlp -u HTTP --nope",
        "-m mlp -u HTTP -j",
        "-m mlp -b",
        "-m mlp -u HTTP -b 0",
        "-m mlp -u HTTP -b x",
        "-m mlp -u HTTP -b 100",
        "-m mlp -u HTTP --concurrency-range 1:2:3:4",
        "-m mlp -u HTTP --concurrency-range 0",
        "-m mlp -u HTTP --concurrency-range 1:0",
        "-m mlp -u HTTP --request-rate-range 10 --concurrency-range 2",
        "-m mlp -u HTTP --request-rate-range 10 -t 2",
        "-m mlp -u HTTP --request-intervals nowhere",
        "-m mlp -u HTTP --binary-search --concurrency-range 1:4",
        "-m mlp -u HTTP --percentile 100",
        "-m mlp -u HTTP --streaming",
        "-m identity -i grpc -u GRPC --streaming --sync --shape INPUT0:2",
        "-m tells -i grpc -u GRPC",
        "-m tells -u HTTP",
        "-m stateful -i grpc -u GRPC -b 2",
        "-m mlp -u HTTP --metrics-url a",
        "-m mlp -u HTTP --collect-metrics --metrics-url 127.0.0.1:9/metrics",
        "-m mlp -u HTTP --shape x:0",
        "-m mlp -u HTTP --input-data nowhere",
        "-m mlp -u HTTP --input-data short.json",
        "-m mlp -u HTTP --input-data unknown.json",
        "-m mlp -u HTTP --input-data nothing.json",
        "-m mlp -u HTTP --input-data wrong.json",
        "-m mlp -u HTTP --input-data uneven.json",
        "-m identity -u HTTP --input-data shapeless.json",
        "-m identity -u HTTP",
        "-m identity -u HTTP --shape INPUT0:2 -b 2",
        "-m identity -u HTTP --shape INPUT0:2,2",
        "-m nobody -u HTTP",
        "-m mlp -x 7 -i grpc -u GRPC",
        "-m mlp -u 127.0.0.1:9",
    ],
)
def test_both_refuse_alike(text: str, server: ServerProcess, folder: Path) -> None:
    real, ours = both(server, folder, text)
    assert ours.code == real.code != 0
    assert [line.rstrip() for line in ours.err.splitlines()[:2]] == [
        line.rstrip() for line in real.err.splitlines()[:2]
    ]
