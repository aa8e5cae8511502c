"""Files of frameworks are measured where the framework is, and left out with a reason elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import alipes
import numpy as np
import pytest
from tritonclient.grpc import service_pb2

from bench import grpc_document
from bench.fleet import Fleet
from bench.grpc_document import GrpcDocument
from bench.load.engine_loops import KINDS
from bench.rows import forests, framework_conv, torchscript
from bench.rows.forests import ForestRow
from bench.rows.framework_conv import FrameworkConvRow, framework_conv_rows, framework_repository
from bench.rows.torchscript import TorchscriptRow, call_repository
from bench.servers import interpreters
from bench.work import GRPC_PREFIX_BYTES, WrongAnswer

ASKED = GrpcDocument("mlp", "x", np.ones((1, 3), np.float32), np.asarray([[0.5]]))


def _answer(*values: float) -> bytes:
    response = service_pb2.ModelInferResponse(model_name="mlp")
    response.raw_output_contents.append(np.asarray(values, np.float32).tobytes())
    return bytes(response.SerializeToString())


@pytest.mark.parametrize(
    ("row", "module", "stage"),
    [(TorchscriptRow(), torchscript, "torch"), (ForestRow(), forests, "trees")],
    ids=["torchscript", "forest"],
)
def test_a_row_without_its_framework_is_left_out_with_a_reason(
    row: TorchscriptRow | ForestRow, module: object, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "python_with", lambda package, stage: None)
    fleet = Fleet(frozenset())
    assert row.cells(fleet) == []
    (reason,) = fleet.skipped.values()
    assert f"extra {stage}" in reason


def test_the_model_that_makes_the_same_call_has_the_same_file(tmp_path: Path) -> None:
    version = tmp_path / "models" / "mlp" / "1"
    version.mkdir(parents=True)
    (version / "model.pt").write_bytes(b"weights")
    call = call_repository(tmp_path / "models")
    assert (call / "mlp" / "1" / "model.pt").read_bytes() == b"weights"
    assert "execute" in (call / "mlp" / "1" / "model.py").read_text()
    assert 'backend: "python"' in (call / "mlp" / "config.pbtxt").read_text()


def test_another_interpreter_imports_the_alipes_that_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "WORK", tmp_path)
    # Without `-I`, which would leave the variable out; without the site, where an alipes of its own would be.
    for _ in range(2):
        environment = interpreters.environment_of(Path("/elsewhere/bin/python"))
        script = "import importlib.util; print(importlib.util.find_spec('alipes').origin)"
        command = [sys.executable, "-S", "-c", script]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert Path(done.stdout.strip()).resolve() == Path(alipes.__file__).resolve()
    assert interpreters.environment_of(Path(sys.executable)) == {}


def test_a_row_over_grpc_is_one_frame_with_one_tensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_document, "WORK", tmp_path)
    body = ASKED.body_file.read_bytes()
    request = service_pb2.ModelInferRequest.FromString(body[GRPC_PREFIX_BYTES:])
    assert (request.model_name, [*request.inputs[0].shape], request.inputs[0].name) == ("mlp", [1, 3], "x")
    assert [*request.raw_input_contents] == [np.ones(3, np.float32).tobytes()]


def test_only_the_right_numbers_are_an_answer_over_grpc() -> None:
    ASKED.check_message(_answer(0.5))
    for wrong in (_answer(0.6), _answer(0.5, 0.5), _answer()):
        with pytest.raises(WrongAnswer, match="expected"):
            ASKED.check_message(wrong)


def test_a_server_that_is_not_there_gives_no_answer_over_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_document, "TIMEOUT_S", 0.2)
    with pytest.raises(WrongAnswer, match="mlp"):
        ASKED.check(1)


@pytest.mark.parametrize("row", framework_conv_rows(), ids=lambda row: row.facts.name)
def test_the_net_is_compared_with_a_raw_loop_of_its_framework(
    row: FrameworkConvRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framework_conv, "python_with", lambda package, stage: None)
    fleet = Fleet(frozenset())
    assert row.cells(fleet) == []
    assert f"extra {row.served.stage}" in fleet.skipped[row.facts.name]
    (target,) = row.facts.targets
    assert (target.of, target.against) == ("alipes", f"raw loop of {row.served.title}")
    assert row.served.kind in KINDS


def test_a_repository_has_the_net_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = tmp_path / "repository" / "conv" / "1" / "model.onnx"
    net.parent.mkdir(parents=True)
    net.write_bytes(b"net")
    monkeypatch.setattr(framework_conv, "repository", lambda: tmp_path / "repository")
    (row,) = [row for row in framework_conv_rows() if row.facts.name == "conv_openvino"]
    assert isinstance(row, FrameworkConvRow)
    folder = framework_repository(row.served, Path(sys.executable))
    assert [path.read_bytes() for path in (folder / "conv" / "1").iterdir()] == [b"net"]
    assert 'backend: "openvino"' in (folder / "conv" / "config.pbtxt").read_text()
