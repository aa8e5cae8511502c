"""What numbers in requests may look like: versions, empty batches, sizes without end, lengths of strings."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.models import add_model
from support.python_models import ECHO as GIVES_BACK
from support.python_models import add_python_model
from support.server import ServerProcess
from support.text_models import add_model as add_text_model
from support.waiting import TIMEOUT_S
from tritonclient.grpc import service_pb2, service_pb2_grpc

ECHO = """
class TritonPythonModel:
    def execute(self, requests):
        return [good(text(request)) for request in requests]
"""
NO_NUMBER = (
    "failed to get model version from specified version string '{}' (details: stol), version should be an integral "
    "value > 0"
)
NO_VERSION_0 = "Request for unknown model: 'double' version 0 is not found"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    add_text_model(repository, "echo", ECHO)
    add_python_model(repository, "grid", GIVES_BACK, signature="X: FP64[-1, -1] -> Y: FP64[-1, -1]")
    return serve_module(repository)


def ask(server: ServerProcess, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
    connection = HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    document = json.loads(answer.read())
    connection.close()
    return answer.status, document.get("error", document)


def infer(
    server: ServerProcess, model: str, name: str, datatype: str, shape: Sequence[int], data: bytes
) -> tuple[int, Any]:
    """The answer to one binary input."""
    tensor = {"name": name, "shape": shape, "datatype": datatype, "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor]}).encode()
    return ask(server, "POST", f"/v2/models/{model}/infer", head + data, Inference_Header_Content_Length=str(len(head)))


@pytest.mark.parametrize(
    ("version", "answer"),
    [
        ("1", ["1"]),
        ("01", ["1"]),
        (" +1.5", ["1"]),
        ("0", NO_VERSION_0),
        ("0x1", NO_VERSION_0),
        ("-1", "invalid model version specified '-1' , version should be an integral value > 0"),
        ("two", NO_NUMBER.format("two")),
        ("9223372036854775808", NO_NUMBER.format("9223372036854775808")),
    ],
)
def test_a_version_is_read_as_far_as_it_is_a_number(server: ServerProcess, version: str, answer: Any) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        try:
            request = service_pb2.ModelMetadataRequest(name="double", version=version)
            said: Any = list(stub.ModelMetadata(request, timeout=TIMEOUT_S).versions)
            counted = stub.ModelStatistics(
                service_pb2.ModelStatisticsRequest(name="double", version=version), timeout=TIMEOUT_S
            )
            assert [one.version for one in counted.model_stats] == ["1"]
        except grpc.RpcError as error:
            said = error.details()
    assert said == answer
    if version.isdigit():
        status, document = ask(server, "GET", f"/v2/models/double/versions/{version}")
        assert (document if status != 200 else document["versions"]) == answer


def test_a_batch_without_rows_is_answered(server: ServerProcess) -> None:
    status, document = infer(server, "double", "X", "FP32", [0, 2], b"")
    assert (status, document["outputs"]) == (200, [{"name": "Y", "datatype": "FP32", "shape": [0, 2], "data": []}])


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ([1 << 32, 1 << 32], "input 'X' for model 'grid' causes total element count to exceed maximum size of"),
        ([1 << 61, 2], "byte size overflow for input 'X' for model 'grid'"),
        ([1 << 63, 0], "shape of input 'X' causes total element count to exceed maximum size of 9223372036854775807"),
        ([1 << 40, 2], "input byte size mismatch for input 'X' for model 'grid'. Expected 17592186044416, got 8"),
    ],
)
def test_a_shape_without_end_is_refused(server: ServerProcess, shape: list[int], text: str) -> None:
    status, said = infer(server, "grid", "X", "FP64", shape, bytes(8))
    assert (status, text in said) == (400, True), said


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x05\0\0\0abc", "incomplete string data for inference input 'HOW', expecting string of length 5 but only 3"),
        (b"\x05\0", "incomplete string length indicator for inference input 'HOW', expecting 4 bytes but only 2 bytes"),
        (struct.pack("<I", (1 << 32) - 1), "expecting string of length 4294967295 but only 0 bytes available"),
        (b"", "expected 1 string elements for inference input 'HOW' for model 'echo', got 0"),
    ],
)
def test_a_string_that_is_cut_is_refused(server: ServerProcess, data: bytes, text: str) -> None:
    status, said = infer(server, "echo", "HOW", "BYTES", [1], data)
    assert (status, text in said) == (400, True), said
