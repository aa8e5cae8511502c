"""A raw loop runs the batches that were formed, and what it runs is the model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.load.engine_loops import ANSWER
from bench.load.tool import Measurement
from bench.models.repository import MODELS
from bench.models.scripts import written_by
from bench.rows import batches as rows_batches
from bench.rows.batches import Batches, Engine, run_loop
from bench.rows.row import CPU_US
from bench.servers import interpreters
from bench.servers.endpoint import Endpoint
from bench.servers.process import Process, StartFailed


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    MODELS["mlp"].write(tmp_path)
    return Engine("onnx", tmp_path / "model.onnx", MODELS["mlp"].input_dims)


@pytest.fixture
def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    monkeypatch.setattr("bench.servers.process.WORK", tmp_path)
    process = Process("idle", [sys.executable, "-c", "import signal; print(flush=True); signal.pause()"])
    process.first_line()
    return Endpoint(process, http_port=1)


def test_a_loop_answers_what_the_model_answers(engine: Engine) -> None:
    found = json.loads(run_loop(engine, ANSWER, str(engine.file), rows=MODELS["mlp"].row().tolist()))
    np.testing.assert_allclose(found, MODELS["mlp"].answer(engine.file.parent), rtol=1e-5)


def test_a_loop_says_how_many_rows_it_ran_and_for_what(engine: Engine) -> None:
    sample = Batches("mlp", {1: 2, 8: 1}).raw(engine, 0.05)
    assert sample.value > 0
    assert sample.detail["batches"] == {1: 2, 8: 1}
    assert float(str(sample.detail[CPU_US])) > 0


def test_a_loop_that_fails_says_why(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match=r"absent\.onnx"):
        Batches("mlp", {1: 1}).raw(Engine("onnx", tmp_path / "absent.onnx", engine.dims), 0.05)


def test_the_batches_of_a_round_are_those_that_were_added(idle: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = iter([{1: 5, 4: 2}, {1: 5, 4: 3, 8: 7}])

    def counted(port: int, path: str) -> object:
        assert (port, path) == (1, "/v2/models/mlp/stats")
        sizes = [{"batch_size": size, "compute_infer": {"count": count}} for size, count in next(stats).items()]
        return {"model_stats": [{"batch_stats": sizes}]}

    monkeypatch.setattr(rows_batches.probe, "get_json", counted)
    batches = Batches("mlp")
    with idle.process:
        sample = batches.served(idle, lambda: Measurement(requests=60, duration_s=2.0, p50_us=1, p99_us=1))
    assert (sample.value, batches.counts) == (30.0, {4: 1, 8: 7})


def test_an_interpreter_that_has_a_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "PROJECT", tmp_path)
    assert interpreters.python_with("numpy", "none") == Path(sys.executable)
    assert interpreters.python_with("no_such_package", "none") is None
    beside = tmp_path / ".venv-none" / "bin" / "python"
    beside.parent.mkdir(parents=True)
    beside.touch()
    assert interpreters.python_with("no_such_package", "none") == beside


def test_a_script_writes_its_models_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.models.scripts.APPS", tmp_path)
    monkeypatch.setattr("bench.models.scripts.WORK", tmp_path / "work")
    monkeypatch.setattr("bench.models.scripts.PROJECT", tmp_path)
    (tmp_path / "m.pbtxt").write_text("max_batch_size: 8\n")
    (tmp_path / "m.py").write_text("import pathlib\npathlib.Path('models/m/1').mkdir(parents=True)\n")
    models = written_by("m", Path(sys.executable))
    assert (models / "m" / "config.pbtxt").read_text() == "max_batch_size: 8\n"
    assert written_by("m", Path(sys.executable)) == models
    (tmp_path / "m.py").write_text("raise SystemExit('no framework')\n")
    with pytest.raises(StartFailed, match=r"m\.py failed:\nno framework"):
        written_by("m", Path(sys.executable))
