"""The bench drives servers with the engine of `alipes.loadtest` as well."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from alipes import Client
from support.models import add_model
from support.server import ServerProcess
from tritonclient.grpc import service_pb2

from bench.load import own
from bench.load.h2load import Streams
from bench.load.tool import LoadFailed


@dataclass(frozen=True)
class Work:
    """A request as the bench has it."""

    path: str
    body_file: Path
    headers: Mapping[str, str] = field(default_factory=dict)


@pytest.fixture
def server(tmp_path: Path, serve: Callable[..., ServerProcess]) -> ServerProcess:
    add_model(tmp_path / "models", "double")
    return serve(tmp_path / "models")


def http_work(folder: Path, columns: int = 2) -> Work:
    tensor = {"name": "X", "datatype": "FP32", "shape": [1, columns], "data": [1.0] * columns}
    (folder / "body").write_text(json.dumps({"inputs": [tensor]}))
    return Work("/v2/models/double/infer", folder / "body", {"Content-Type": "application/json"})


def grpc_work(folder: Path) -> Work:
    message = service_pb2.ModelInferRequest(model_name="double")
    message.inputs.add(name="X", datatype="FP32", shape=[1, 2])
    message.raw_input_contents.append(np.ones(2, np.float32).tobytes())
    raw = message.SerializeToString()
    (folder / "body").write_bytes(b"\0" + len(raw).to_bytes(4, "big") + raw)
    return Work("/inference.GRPCInferenceService/ModelInfer", folder / "body")


@pytest.mark.parametrize(("wire", "make"), [("http", http_work), ("grpc", grpc_work)])
def test_its_requests_are_those_that_the_server_answered(
    server: ServerProcess, tmp_path: Path, wire: str, make: Callable[[Path], Work]
) -> None:
    port = int(getattr(server, wire).rpartition(":")[2])
    measurement, cpu_us = own.post(port, make(tmp_path), Streams(2, 2), 0.2, wire)  # type: ignore[arg-type]
    with Client(server.http) as client:
        executed = client.statistics("double")[0]["inference_stats"]["success"]["count"]
    # What is answered after the end is not counted.
    assert 0 < measurement.requests <= executed
    assert 0 < measurement.p50_us <= measurement.p99_us
    assert cpu_us > 0


@pytest.mark.parametrize(("wire", "make"), [("http", http_work), ("grpc", grpc_work)])
def test_an_open_loop_says_how_late_it_was(
    server: ServerProcess, tmp_path: Path, wire: str, make: Callable[[Path], Work]
) -> None:
    port = int(getattr(server, wire).rpartition(":")[2])
    seen = own.pace(port, make(tmp_path), 100.0, 0.5, wire)  # type: ignore[arg-type]
    # A closed loop answers thousands in a second. The schedule has 100; answers that were due before come in addition,
    # as many as the machine held up.
    assert 0 < seen["rate"] < 1000
    assert 0 < seen["late_p50_us"] <= seen["late_p99_us"]
    assert seen["late_p50_us"] < seen["p50_us"] <= seen["p99_us"]


def test_a_refusal_is_no_figure(server: ServerProcess, tmp_path: Path) -> None:
    port = int(server.http.rpartition(":")[2])
    with pytest.raises(LoadFailed, match="failures"):
        own.post(port, http_work(tmp_path, columns=3), Streams(1, 1), 0.1, "http")  # type: ignore[arg-type]
    with pytest.raises(LoadFailed, match="failures"):
        own.pace(port, http_work(tmp_path, columns=3), 100.0, 0.5, "http")  # type: ignore[arg-type]
