"""Triton's trace file: what is in it, when it is written, and how it is steered."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.endpoints import ENDPOINTS, HttpEndpoint
from support.python_models import add_python_model
from support.server import ServerProcess
from support.trace_files import heads, moments, read

Serve = Callable[..., ServerProcess]

ECHO = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=given(request)) for request in requests]
"""

CALLS = """
class TritonPythonModel:
    def execute(self, requests):
        traced = given(requests[0])[0] > 0
        call = pb_utils.InferenceRequest(
            model_name="echo", requested_output_names=["Y"],
            inputs=[pb_utils.Tensor("X", given(requests[0]))], **({"trace": requests[0].trace()} if traced else {}))
        call.exec()
        return [answer(Y=given(request)) for request in requests]
"""

MODEL = ["REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
DOOR = {
    "http": ["HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END"],
    "grpc": ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START", "GRPC_SEND_END"],
}


def change(server: ServerProcess, path: str, **settings: object) -> dict[str, Any]:
    connection = HTTPConnection(server.http, timeout=60)
    connection.request("POST", path, json.dumps(settings))
    answer = connection.getresponse()
    document: dict[str, Any] = json.loads(answer.read())
    connection.close()
    assert answer.status == 200, document
    return document


@pytest.fixture
def start(repository: Path, tmp_path: Path, serve: Serve) -> Serve:
    """Serves an echo and a model that calls it, and traces into ``trace.json``."""
    add_python_model(repository, "echo", ECHO)
    add_python_model(repository, "calls", CALLS)

    def started(*settings: str) -> ServerProcess:
        file = f"triton,file={tmp_path / 'trace.json'}"
        return serve(repository, *(f"--trace-config={setting}" for setting in (file, *settings)))

    return started


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_request_is_traced_from_endpoint_to_endpoint(start: Serve, tmp_path: Path, endpoint: str) -> None:
    server = start("level=TIMESTAMPS", "rate=1", "count=1")
    with ENDPOINTS[endpoint](server) as client:
        client.ask("echo", {"X": [1]}, request_id='my "own"')
    documents = read(tmp_path / "trace.json.0")
    (head,) = heads(documents)
    assert head.items() >= {"model_name": "echo", "model_version": 1, "request_id": 'my "own"'}.items()
    seen = moments(documents, head["id"])
    assert set(DOOR[endpoint] + MODEL + ["REQUEST_END", "INFER_RESPONSE_COMPLETE"]) <= seen.keys()
    assert list(seen.values()) == sorted(seen.values())
    assert [name for name in seen if name in MODEL] == MODEL
    assert abs(seen["REQUEST_START"] - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) < 600e9


def test_one_request_in_rate_is_traced(start: Serve, tmp_path: Path) -> None:
    server = start("level=TIMESTAMPS", "rate=3")
    with HttpEndpoint(server) as endpoint:
        for number in range(7):
            endpoint.ask("echo", {"X": [1]}, request_id=str(number))
    assert server.stop() == 0
    assert [head["request_id"] for head in heads(read(tmp_path / "trace.json"))] == ["2", "5"]


def test_so_many_traces_share_a_file(start: Serve, tmp_path: Path) -> None:
    server = start("level=TIMESTAMPS", "rate=1", "triton,log-frequency=2")
    with HttpEndpoint(server) as endpoint:
        for number in range(5):
            endpoint.ask("echo", {"X": [1]}, request_id=str(number))
        first, second = (heads(read(tmp_path / f"trace.json.{number}")) for number in range(2))
    assert server.stop() == 0
    rest = heads(read(tmp_path / "trace.json.2"))
    assert [[head["request_id"] for head in one] for one in (first, second, rest)] == [["0", "1"], ["2", "3"], ["4"]]


def test_tensors_are_traced_as_text(start: Serve, tmp_path: Path) -> None:
    server = start("level=TENSORS", "rate=1", "count=1")
    with HttpEndpoint(server) as endpoint:
        endpoint.ask("echo", {"X": [3, -4]})
    documents = read(tmp_path / "trace.json.0")
    tensor = {"data": "3,-4", "shape": "2", "dtype": "INT32"}
    seen = [(one["activity"], one["tensor"]) for one in documents if "activity" in one]
    assert seen == [
        ("TENSOR_QUEUE_INPUT", {"name": "X", **tensor}),
        ("TENSOR_BACKEND_OUTPUT", {"name": "Y", **tensor}),
    ]
    assert not any("timestamps" in one for one in documents)


def test_a_call_is_traced_where_the_model_hands_the_trace_on(start: Serve, tmp_path: Path) -> None:
    server = start("level=TIMESTAMPS", "rate=1", "triton,log-frequency=1")
    with HttpEndpoint(server) as endpoint:
        endpoint.ask("calls", {"X": [0]})
        endpoint.ask("calls", {"X": [1]})
    (alone,) = heads(read(tmp_path / "trace.json.0"))
    assert alone["model_name"] == "calls"
    documents = read(tmp_path / "trace.json.1")
    caller, called = heads(documents)
    assert (caller["model_name"], called["model_name"], called["parent_id"]) == ("calls", "echo", caller["id"])
    outer, inner = moments(documents, caller["id"]), moments(documents, called["id"])
    assert outer["COMPUTE_START"] <= inner["REQUEST_START"] <= inner["REQUEST_END"] <= outer["REQUEST_END"]


def test_the_requests_of_a_stream_are_traced_one_by_one(start: Serve, tmp_path: Path) -> None:
    server = start("level=TIMESTAMPS", "rate=1", "count=2")
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: None)
        tensor = grpc_client.InferInput("X", [1], "INT32")
        tensor.set_data_from_numpy(np.array([1], dtype=np.int32))
        for number in range(2):
            client.async_stream_infer("echo", [tensor], request_id=str(number))
        client.stop_stream()
    documents = read(tmp_path / "trace.json.0")
    assert sorted(head["request_id"] for head in heads(documents)) == ["0", "1"]
    for head in heads(documents):
        assert set(DOOR["grpc"] + MODEL) <= moments(documents, head["id"]).keys()


def test_one_model_is_traced_while_the_server_runs_and_no_longer(start: Serve, tmp_path: Path) -> None:
    server = start()
    path = "/v2/models/echo/trace/setting"
    with HttpEndpoint(server) as endpoint:
        endpoint.ask("echo", {"X": [1]}, request_id="before")
        assert change(server, path, trace_level=["TIMESTAMPS"], trace_rate="1", log_frequency="1")["trace_rate"] == "1"
        endpoint.ask("calls", {"X": [1]}, request_id="another")
        endpoint.ask("echo", {"X": [1]}, request_id="during")
        assert change(server, path, trace_level=None, trace_rate=None, log_frequency=None)["trace_level"] == ["OFF"]
        endpoint.ask("echo", {"X": [1]}, request_id="after")
    assert server.stop() == 0
    files = sorted(tmp_path.glob("trace.json*"))
    assert [head["request_id"] for file in files for head in heads(read(file))] == ["during"]


def test_the_rest_of_a_count_is_reported(start: Serve) -> None:
    server = start("level=TIMESTAMPS", "rate=1", "count=3")
    with HttpEndpoint(server) as endpoint:
        endpoint.ask("echo", {"X": [1]})
    connection = HTTPConnection(server.http, timeout=60)
    connection.request("GET", "/v2/trace/setting")
    assert json.loads(connection.getresponse().read())["trace_count"] == "2"
    connection.close()


def test_an_unwritable_file_is_logged_and_fails_no_request(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "echo", ECHO)
    settings = ("triton,file=/proc/nowhere/trace.json", "level=TIMESTAMPS", "rate=1", "triton,log-frequency=1")
    server = serve(repository, *(f"--trace-config={setting}" for setting in settings))
    with HttpEndpoint(server) as endpoint:
        for _ in range(3):
            endpoint.ask("echo", {"X": [1]})
    server.wait_for_output(r"E\d{4} .*failed creating trace file: ")
    assert server.stop() == 0


def test_a_request_that_is_refused_leaves_a_record_of_its_endpoint(start: Serve, tmp_path: Path) -> None:
    server = start("level=TIMESTAMPS", "rate=1", "count=1")
    connection = HTTPConnection(server.http, timeout=60)
    connection.request("POST", "/v2/models/echo/infer", b"{")
    assert connection.getresponse().status == 500
    connection.close()
    documents = read(tmp_path / "trace.json.0")
    assert heads(documents) == []
    assert {"HTTP_RECV_START", "HTTP_SEND_END"} <= moments(documents, documents[0]["id"]).keys()
