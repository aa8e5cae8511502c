"""`alipes tune` and `alipes.tune` with real servers."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes import Client, ConfigError, ServeError
from alipes.config.pbtxt import read_config
from alipes.loadtest import Measuring, ModelRequests
from alipes.tune import Goal, Limit, Outcome, Rejected, run
from alipes.tune.analyzer.plan import read_plan
from alipes.tune.analyzer.profile import profile
from support.command import alipes
from support.ensembles import ensemble
from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

SHORT = Measuring(count=40)
DOUBLE = ModelRequests("double")

CONFIG = """
max_batch_size: 4
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching { }
"""

# Its third instance dies at its start.
PYTHON = """
import os

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        if args["model_instance_name"].endswith("_2"):
            os._exit(7)

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(one, "X").as_numpy() for one in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", rows)]) for rows in inputs]
"""
PYTHON_CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "X" data_type: TYPE_FP32 dims: 2 }
output { name: "Y" data_type: TYPE_FP32 dims: 2 }
instance_group { count: 1 kind: KIND_CPU }
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    add_model(folder, "double", times())
    (folder / "double" / "config.pbtxt").write_text(CONFIG)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow("starts a server for each configuration")
def test_every_point_is_tried_or_left_out(models: Path, tmp_path: Path) -> None:
    before = files(models)
    seen: list[Outcome | Rejected] = []
    ranges = {"instances": [1, 2], "max_batch_size": [1, 4], "queue_delay_us": [0, 100], "callers": [2]}
    results = run(models, DOUBLE, ranges=ranges, search="brute", measuring=SHORT, each=seen.append)
    assert files(models) == before
    assert len(results.outcomes) == 6
    assert {one.reason for one in results.rejected} == {
        "a batch of 'double' is full with one request: there is nothing to wait for"
    }
    assert [outcome.failure for outcome in results.outcomes] == [""] * 6
    for outcome in results.outcomes:
        assert outcome.figures["rate"] > 0
        assert 0 < outcome.figures["p50_ms"] <= outcome.figures["p99_ms"]
        assert 10 < outcome.figures["memory_mb"] < 2000
        assert outcome.details["compute_infer_ms"] > 0
    best = results.best
    assert best is not None
    assert results.present is not None
    assert results.present.point.of_model("double") == {
        "instances": 1,
        "max_batch_size": 4,
        "queue_delay_us": 0,
        "callers": best.point.number("double", "callers"),
    }
    results.write(tmp_path / "out")
    chosen = read_config(tmp_path / "out" / "double")
    assert chosen is not None
    assert chosen.instance_group[0].count == best.point.number("double", "instances")
    assert chosen.max_batch_size == best.point.number("double", "max_batch_size")


@pytest.mark.slow("starts a server for each configuration")
def test_a_server_that_dies_is_a_result(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "fragile"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(PYTHON)
    (folder / "config.pbtxt").write_text(PYTHON_CONFIG)
    results = run(tmp_path / "models", "fragile", ranges={"instances": [1, 2, 3]}, search="brute", measuring=SHORT)
    failures = {outcome.point.number("fragile", "instances"): outcome.failure for outcome in results.outcomes}
    assert failures[1] == failures[2] == ""
    assert "the server did not start" in failures[3]
    assert results.best is not None
    memory = {one.point.number("fragile", "instances"): one.figures.get("memory_mb", 0) for one in results.outcomes}
    assert memory[2] > memory[1]


@pytest.mark.slow("starts several servers")
def test_a_search_goes_on_from_its_history(models: Path, tmp_path: Path) -> None:
    options = {"ranges": {"instances": [1, 2], "callers": [1, 2]}, "measuring": SHORT, "history": tmp_path / "h.jsonl"}
    first: list[Outcome | Rejected] = []
    run(models, DOUBLE, search="brute", trials=2, each=first.append, **options)  # type: ignore[arg-type]
    second: list[Outcome | Rejected] = []
    results = run(models, DOUBLE, search="brute", each=second.append, **options)  # type: ignore[arg-type]
    assert len(results.outcomes) == 4
    again = {outcome.point for outcome in first} & {outcome.point for outcome in second}
    assert {outcome.point for outcome in results.outcomes if outcome.repeats > 1} >= again
    third: list[Outcome | Rejected] = []
    run(models, DOUBLE, search="brute", goal=Goal(limits=(Limit.parse("p99_ms<=1e9"),)), each=third.append, **options)  # type: ignore[arg-type]
    assert not third


def test_what_cannot_be_tuned_is_refused(models: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no model 'nobody'"):
        run(models, "nobody", measuring=SHORT)
    with pytest.raises(ConfigError, match="no knob 'instanses'"):
        run(models, "double", ranges={"instanses": [1]}, measuring=SHORT)
    with pytest.raises(ConfigError, match="values for 'nobody'"):
        run(models, "double", ranges={"nobody": {"instances": [1]}}, measuring=SHORT)
    with pytest.raises(ConfigError, match="no search 'guess'"):
        run(models, "double", search="guess", measuring=SHORT)  # type: ignore[arg-type]
    (models / "double" / "1" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ServeError, match="double"):
        run(models, "double", measuring=SHORT)


@pytest.mark.slow("starts several servers")
def test_the_command_writes_and_prints_what_it_found(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["tune", str(models), "--model=double", "--try=instances=1,2", "--try=callers=2", "--window=0.05"]
    done = alipes(*words, "--windows=2", "--limit=p99_ms<=0.000001", f"--output={out}")
    assert done.code == 0
    assert done.err.startswith("2 points, of which up to 2 are tried")
    assert "trial 2: instances 2, callers 2: rate " in done.err
    assert "No trial kept all limits; this one comes nearest." in done.out
    assert f"written: {out}/double/config.pbtxt, {out}/trials.csv, {out}/report.html" in done.out
    again = alipes(*words, "--windows=2", "--search=brute", f"--output={out}", "--json")
    document = json.loads(again.out)
    assert (again.code, document["keeps_limits"]) == (0, True)
    assert again.err.count("trial ") <= 2, "what is known is tried only to confirm who leads"
    assert len(document["trials"]) == 2


@pytest.mark.slow("starts several servers")
def test_ctrl_c_prints_what_is_known(models: Path, tmp_path: Path) -> None:
    history = tmp_path / "out" / "history.jsonl"
    command = [sys.executable, "-m", "alipes", "tune", str(models), "--model=double", "--window=0.1", "--windows=2"]
    with subprocess.Popen(
        [*command, "--try=callers=1,2,3,4,5,6,7,8,9", "--search=brute", f"--output={tmp_path / 'out'}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as tuner:
        try:
            until(lambda: history.exists() and history.read_text().count("\n") >= 2)
            tuner.send_signal(signal.SIGINT)
            out, err = tuner.communicate(timeout=TIMEOUT_S)
        finally:
            tuner.kill()
    assert tuner.returncode == 130
    assert "The search was interrupted after " in out
    assert "Traceback" not in err
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow("starts several servers")
def test_a_tuner_that_is_ended_leaves_its_trials_alone_behind(models: Path, tmp_path: Path) -> None:
    history, temporary = tmp_path / "out" / "history.jsonl", tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "alipes", "tune", str(models), "--model=double", "--window=0.1", "--windows=2"]
    with subprocess.Popen(
        [*command, "--try=callers=1,2,3,4,5,6,7,8,9", "--search=brute", f"--output={tmp_path / 'out'}"],
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        text=True,
    ) as tuner:
        try:
            until(lambda: history.exists() and any(temporary.glob("alipes-tune-*")))
            tuner.terminate()
            _, err = tuner.communicate(timeout=TIMEOUT_S)
        finally:
            tuner.kill()
    assert tuner.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in err
    assert [*temporary.iterdir()] == []


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_a_live_server_is_changed_in_place_and_goes_back(models: Path, serve: Serve, wire: str) -> None:
    server = serve(models, "--model-control-mode=explicit", "--load-model=double")
    address = f"{wire}://{getattr(server, wire)}"
    seen: list[int] = []
    with Client(address) as client:

        def each(outcome: Outcome | Rejected) -> None:
            seen.append(client.config("double")["instance_group"][0]["count"])

        results = run(address, DOUBLE, ranges={"instances": [1, 2, 3]}, search="brute", measuring=SHORT, each=each)
        assert seen[:3] == [1, 2, 3]
        assert client.config("double")["instance_group"][0]["count"] == 1
    assert [outcome.failure for outcome in results.outcomes] == ["", "", ""]
    assert results.best is not None
    assert results.configs["double"].instance_group[0].count == results.best.point.number("double", "instances")


@pytest.fixture
def chain(models: Path) -> Path:
    add_model(models, "triple", times(3.0))
    (models / "triple" / "config.pbtxt").write_text(CONFIG)
    (models / "chain" / "1").mkdir(parents=True)
    (models / "chain" / "config.pbtxt").write_text(ensemble("double", "triple"))
    return models


@pytest.mark.slow("starts a server for each configuration")
def test_the_models_of_an_ensemble_are_tuned_under_its_load(chain: Path, tmp_path: Path) -> None:
    ranges = {"chain": {"callers": [2]}, "double": {"instances": [1, 2]}, "triple": {"max_batch_size": [2, 4, 8]}}
    results = run(chain, "chain", ranges=ranges, search="brute", measuring=SHORT)
    assert [outcome.failure for outcome in results.outcomes] == [""] * 4
    assert {one.reason for one in results.rejected} == {
        "ensemble 'chain' sends batches of up to 4, more than 2 for 'triple'"
    }
    assert results.configs.keys() == {"double", "triple"}
    written = {str(path.relative_to(tmp_path)) for path in results.write(tmp_path)}
    assert written == {"double/config.pbtxt", "triple/config.pbtxt", "trials.csv", "report.html"}
    refused = run(chain, "chain", ranges={"chain": {"instances": [1, 2]}}, search="brute", measuring=SHORT)
    assert refused.best is None
    assert "is an ensemble: instances is a matter of its models double, triple" in refused.rejected[0].reason


@pytest.mark.slow("starts a server for each configuration")
def test_several_models_are_measured_at_the_same_time(chain: Path) -> None:
    ranges = {"double": {"instances": [1, 2], "callers": [1, 2]}, "triple": {"callers": [2]}}
    goal = Goal(limits=(Limit.parse("triple.p99_ms<=10000"),))
    results = run(chain, ["double", "triple"], ranges=ranges, goal=goal, search="brute", measuring=SHORT)
    assert len(results.outcomes) == 4
    assert results.is_feasible
    for figures in (outcome.figures for outcome in results.outcomes if outcome.repeats == 1):
        assert figures["rate"] == pytest.approx(figures["double.rate"] + figures["triple.rate"])
        assert figures["p99_ms"] == max(figures["double.p99_ms"], figures["triple.p99_ms"])


def analyzer_options(models: Path, out: Path) -> dict[str, object]:
    """A search of Model Analyzer's over two instances, as its YAML names it."""
    return {
        "model_repository": str(models),
        "profile_models": "double",
        "concurrency": "2",
        "run_config_search_max_instance_count": 2,
        "run_config_search_max_model_batch_size": 1,
        "export_path": str(out),
        "output_model_repository_path": str(out / "models"),
        "checkpoint_directory": str(out),
        "latency_budget": 10000,
    }


def check_tables(out: Path) -> None:
    """The tables, reports and configurations of that search."""
    rows = list(csv.reader((out / "results" / "metrics-model-inference.csv").read_text().splitlines()))
    assert rows[0][3:7] == ["Model Config Path", "Instance Group", "Max Batch Size", "Satisfies Constraints"]
    assert len(rows[1:-1]) >= 2
    assert {row[4] for row in rows[1:-1]} == {"1:CPU", "2:CPU"}
    assert {row[6] for row in rows[1:-1]} == {"Yes"}
    assert (out / "results" / "metrics-model-gpu.csv").exists()
    assert (out / "reports" / "summaries" / "double" / "result_summary.html").exists()
    assert list((out / "models").glob("double_config_*/config.pbtxt"))


def analyzer_words(models: Path, out: Path) -> list[str]:
    """The same search as a command line."""
    named = analyzer_options(models, out).items()
    return ["model_analyzer", "profile", *(f"--{name.replace('_', '-')}={value}" for name, value in named)]


@pytest.mark.slow("starts a server for each configuration")
def test_a_plan_of_model_analyzers_writes_its_tables(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (results,), written = profile(read_plan(None, analyzer_options(models, out)), measuring=SHORT)
    assert results.best is not None
    assert out / "results" / "metrics-model-inference.csv" in written
    check_tables(out)
    again = alipes(*analyzer_words(models, out))
    assert again.code == 1
    assert "override_output_model_repository" in again.message


@pytest.mark.proof  # the command measures until its figures are sure
def test_model_analyzers_command_line_writes_its_tables(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = alipes(*analyzer_words(models, out))
    assert (done.code, done.out.startswith("best: instances ")) == (0, True)
    check_tables(out)
