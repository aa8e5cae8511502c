"""`alipes perf_analyzer` against servers that are good, that fail, that go away; and what it leaves behind."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from alipes import Client
from support.command import Done, alipes
from support.models import add_model
from support.perf_models import ENSEMBLE, add_perf_models, identity
from support.python_models import add_python_model
from support.regions import ALLOWED
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

QUICK = ("-p", "300", "-s", "1000000")
FAILS_LATER = """
class TritonPythonModel:
    def initialize(self, args):
        self.seen = 0

    def execute(self, requests):
        self.seen += len(requests)
        if self.seen > 200:
            raise RuntimeError("enough is enough")
        return [answer(Y=given(request)) for request in requests]
"""
SLEEPS = """
import time


class TritonPythonModel:
    def execute(self, requests):
        time.sleep(20)
        return [answer(Y=given(request)) for request in requests]
"""
APP = """
import alipes


@alipes.model
def twice(x: float) -> float:
    return 2 * x
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("perf")
    add_perf_models(folder / "models")
    (folder / "models" / "both" / "1").mkdir(parents=True)
    (folder / "models" / "both" / "config.pbtxt").write_text(ENSEMBLE)
    add_model(folder / "models", "cached", identity(), config="response_cache { enable: true }\n")
    add_python_model(folder / "models", "words", signature="X: BYTES[2] -> Y: BYTES[2]")
    add_python_model(folder / "models", "a%20b c", signature="X: FP32[2] -> Y: FP32[2]")
    add_python_model(folder / "models", "later", FAILS_LATER)
    add_python_model(folder / "models", "sleeps", SLEEPS)
    (folder / "app.py").write_text(APP)
    yield serve_module(folder / "app.py", str(folder / "models"), ALLOWED, "--cache-config=local,size=1048576")


def measure(server: ServerProcess, model: str, *words: str, wire: str = "http", folder: Path | None = None) -> Done:
    address = getattr(server, wire)
    return alipes("perf_analyzer", "-m", model, "-i", wire, "-u", address, *QUICK, *words, folder=folder)


def executed(server: ServerProcess, model: str) -> int:
    with Client(server.http) as client:
        return int(client.statistics(model)[0]["inference_stats"]["success"]["count"])


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_as_many_requests_are_sent_as_are_wanted(server: ServerProcess, wire: str) -> None:
    before = executed(server, "mlp")
    done = measure(server, "mlp", "--request-count", "50", "--warmup-request-count", "7", "-b", "3", wire=wire)
    assert (done.code, done.err) == (0, "")
    assert "    Request count: 50\n" in done.out
    assert "    Inference count: 150\n" in done.out
    assert executed(server, "mlp") - before == 57


@pytest.mark.parametrize("words", [(), ("--input-tensor-format", "json", "--output-tensor-format", "json")])
def test_a_model_is_measured_whatever_its_name(server: ServerProcess, words: tuple[str, ...]) -> None:
    done = measure(server, "a%20b c", "--request-count", "5", *words)
    assert (done.code, done.err) == (0, "")
    assert "    Request count: 5\n" in done.out


def test_an_ensemble_shows_its_models_and_their_tables(server: ServerProcess, tmp_path: Path) -> None:
    done = measure(server, "both", "-f", "e.csv", folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "  Composing models: \n  mlp, version: 1\n      Inference count: " in done.out
    [row] = csv.DictReader((tmp_path / "mlp_v1.e.csv").read_text().splitlines())
    assert row["Concurrency"] == "1"


def test_a_cache_has_lines_and_columns_of_its_own(server: ServerProcess, tmp_path: Path) -> None:
    words = ("--shape", "INPUT0:4", "--input-data", "zero", "-f", "c.csv")
    done = measure(server, "cached", *words, folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "      Average Cache Hit Latency: " in done.out
    [row] = csv.DictReader((tmp_path / "c.csv").read_text().splitlines())
    assert int(row["Server Cache Hit"]) >= 0


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_text_is_sent(server: ServerProcess, wire: str) -> None:
    for words in ((), ("--string-data", "abc"), ("--string-length", "3")):
        assert measure(server, "words", "--request-count", "5", *words, wire=wire).code == 0


def test_tensors_travel_as_json_where_it_is_wanted(server: ServerProcess, tmp_path: Path) -> None:
    data = {"data": [{"INPUT0": [1.5, 2.5]}], "validation_data": [{"OUTPUT0": [1.5, 2.5]}]}
    (tmp_path / "data.json").write_text(json.dumps(data))
    words = ("--input-data", "data.json", "--shape", "INPUT0:2", "--shape", "OUTPUT0:2", "--request-count", "20")
    for formats in (
        (),
        ("--input-tensor-format", "json"),
        ("--output-tensor-format", "json"),
        ("--input-tensor-format", "json", "--output-tensor-format=json"),
    ):
        done = measure(server, "identity", *words, *formats, folder=tmp_path)
        assert done.code == 0, done.err


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_answers_are_compared_with_the_validation_data(server: ServerProcess, wire: str, tmp_path: Path) -> None:
    step = {"INPUT0": {"content": [1, 2], "shape": [2]}}
    for name, content in (("good", [1, 2]), ("bad", [1, 3])):
        data = {"data": [step], "validation_data": [{"OUTPUT0": {"content": content, "shape": [2]}}]}
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    good = measure(server, "identity", "--input-data", "good.json", "--request-count", "20", wire=wire, folder=tmp_path)
    assert good.code == 0, good.err
    bad = measure(server, "identity", "--input-data", "bad.json", "--request-count", "20", wire=wire, folder=tmp_path)
    assert bad.code == 99
    assert "Thread [0] had error: Output doesn't match expected output" in bad.err


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_shared_memory_is_used_and_released(server: ServerProcess, wire: str) -> None:
    for model, words in (("mlp", ("-b", "4")), ("identity", ("--shape", "INPUT0:8"))):
        shared = ("--shared-memory", "system", "--output-shared-memory-size", "4096", "--concurrency-range", "3")
        done = measure(server, model, *words, *shared, "--request-count", "40", wire=wire)
        assert (done.code, done.err) == (0, "")
    with urlopen(f"http://{server.http}/v2/systemsharedmemory/status", timeout=TIMEOUT_S) as left:
        assert json.loads(left.read()) == []


def test_an_endpoint_of_any_kind_is_measured(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps({"data": [{"payload": [{"x": 2}]}]}))
    words = ("--service-kind", "http", "--endpoint", "twice", "--input-data", "data.json", "--request-count", "20")
    done = alipes("perf_analyzer", "-u", server.http, *words, folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "  Service Kind: HTTP" in done.out
    assert "Server:" not in done.out


def test_the_first_failure_ends_a_run_with_what_was_measured(server: ServerProcess) -> None:
    done = measure(server, "later", "--shape", "X:1", "-p", "100000")
    assert done.code == 99
    assert "Thread [0] had error: " in done.err
    assert "enough is enough" in done.err
    assert "    Request count: 200\n" in done.out


def test_a_server_that_hangs_ends_the_run(server: ServerProcess) -> None:
    done = measure(server, "sleeps", "--shape", "X:1", "-p", "100")
    assert done.code == 3
    assert done.err == "No valid requests recorded within time interval. Please use a larger time window.\n"


def test_binary_search_stops_at_the_limit(server: ServerProcess) -> None:
    words = ("--binary-search", "--concurrency-range", "1:8:1", "-l", "60000")
    done = measure(server, "mlp", *words)
    assert (done.code, done.err) == (0, "")
    levels = [line for line in done.out.splitlines() if line.startswith("Request concurrency")]
    assert levels == ["Request concurrency: 1", "Request concurrency: 8"]


def test_a_metrics_page_that_is_not_there_is_named(server: ServerProcess) -> None:
    done = measure(server, "mlp", "--collect-metrics", "--metrics-url", "127.0.0.1:9/metrics")
    assert (done.code, done.err) == (99, "Unable to connect to Metrics endpoint 127.0.0.1:9/metrics\n")


def test_a_report_that_cannot_be_written_is_named(server: ServerProcess) -> None:
    done = measure(server, "mlp", "-f", "/no/such/folder/a.csv")
    assert done.code == 99
    assert "Inferences/Second vs. Client" in done.out
    assert "failed to write the report '/no/such/folder/a.csv'" in done.err


def running(server: ServerProcess, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "alipes", "perf_analyzer", "-m", "mlp", "-u", server.http, "-p", "2000", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_an_interrupt_leaves_what_was_measured(server: ServerProcess) -> None:
    before = executed(server, "mlp")
    with running(server, "-r", "100000", "-s", "0.0001") as tester:
        try:
            until(lambda: executed(server, "mlp") > before + 1000)
            tester.send_signal(signal.SIGINT)
            out, err = tester.communicate(timeout=TIMEOUT_S)
        finally:
            tester.kill()
    assert tester.returncode == 0
    assert err == "Interrupt signal (2) received: what was measured until then is above.\n"
    assert "Concurrency: 1, throughput: " in out


def test_a_model_that_is_unloaded_ends_the_run(tmp_path: Path, serve: Serve) -> None:
    add_perf_models(tmp_path / "models")
    server = serve(tmp_path / "models", "--model-control-mode=explicit", "--load-model=mlp")
    with running(server, "-r", "100000", "-s", "0.0001") as tester, Client(server.http) as client:
        try:
            until(lambda: executed(server, "mlp") > 1000)
            client.unload("mlp")
            out, err = tester.communicate(timeout=TIMEOUT_S)
        finally:
            tester.kill()
    assert tester.returncode == 99
    assert "'mlp'" in err
    assert "    Request count: " in out


def test_a_server_that_goes_away_leaves_what_was_measured(tmp_path: Path, serve: Serve) -> None:
    add_perf_models(tmp_path / "models")
    server = serve(tmp_path / "models")
    with running(server, "-r", "100000", "-s", "0.0001") as tester:
        try:
            until(lambda: executed(server, "mlp") > 1000)
            server.kill()
            out, err = tester.communicate(timeout=TIMEOUT_S)
        finally:
            tester.kill()
    assert tester.returncode == 99
    assert "Failed to maintain requested inference load." in err
    assert "    Request count: " in out
    assert "Traceback" not in err
