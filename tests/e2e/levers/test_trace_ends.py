"""Traces of every kind of request and of end: plain JSON and events, refusals, cancelled calls, workers that end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

import pytest
from support.endpoints import ENDPOINTS, HttpEndpoint
from support.notes import Notes
from support.processes import workers_of
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess
from support.trace_files import heads, moments, read, summarize
from support.waiting import TIMEOUT_S

Serve = Callable[..., ServerProcess]

# Waits for the test, or ends with its process.
HOLDS = """
class TritonPythonModel:
    def execute(self, requests):
        note("begun", os.getpid())
        await_note("go on")
        return [answer(Y=given(request)) for request in requests]
"""

CHAIN = """
platform: "ensemble"
input { name: "X" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] }
ensemble_scheduling { step [
  { model_name: "echo" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "M" } },
  { model_name: "holds" model_version: -1 input_map { key: "X" value: "M" } output_map { key: "Y" value: "Y" } }
] }
"""


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def start(repository: Path, tmp_path: Path, notes: Notes, serve: Serve) -> Serve:
    """Serves some models, and traces all requests until so many were drawn."""
    add_python_model(repository, "echo")
    add_python_model(repository, "tells", REPORTS, config=DECOUPLED)
    add_python_model(repository, "holds", HOLDS)
    (repository / "chain" / "1").mkdir(parents=True)
    (repository / "chain" / "config.pbtxt").write_text(CHAIN)

    def started(count: int) -> ServerProcess:
        settings = (f"triton,file={tmp_path / 'trace.json'}", "level=TIMESTAMPS", "rate=1", f"count={count}")
        flags = [f"--trace-config={setting}" for setting in settings]
        return serve(repository, *flags, "--log-verbose=1", environment=notes.environment)

    return started


def post(server: ServerProcess, path: str, body: bytes | str) -> tuple[int, str]:
    connection = HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request("POST", f"/v2/models/{path}", body)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize(
    ("model", "way"), [("echo", "generate"), ("echo", "generate_stream"), ("tells", "generate_stream")]
)
def test_plain_json_is_traced_and_has_its_line(start: Serve, tmp_path: Path, model: str, way: str) -> None:
    server = start(1)
    assert post(server, f"{model}/{way}", json.dumps({"id": "7", "X": [1, 2]}))[0] == 200
    documents = read(tmp_path / "trace.json.0")
    (head,) = heads(documents)
    seen = list(moments(documents, head["id"]))
    assert head.items() >= {"model_name": model, "request_id": "7"}.items()
    assert seen[:3] == ["HTTP_RECV_START", "HTTP_RECV_END", "REQUEST_START"]
    # A decoupled model's last response may have left before its `execute` returns.
    assert {"COMPUTE_START", "COMPUTE_END", "REQUEST_END", "HTTP_SEND_START", "HTTP_SEND_END"} <= set(seen)
    assert seen.index("REQUEST_END") < seen.index("HTTP_SEND_END")
    server.wait_for_output(rf"\[request id: 7\] model '{model}' version 1 answered after \d+ us")


def test_plain_json_that_fails_has_its_line(start: Serve) -> None:
    server = start(1)
    assert post(server, "echo/generate", json.dumps({"id": "7", "X": "no number"}))[0] == 500
    server.wait_for_output(r"\[request id: <id_unknown>\] a request for model 'echo' was refused: ")
    assert post(server, "echo/generate", json.dumps({"id": "8"}))[0] == 400
    server.wait_for_output(r"\[request id: 8\] model 'echo' version 1 failed after \d+ us: ")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("nobody/infer", b"{}", "a request for model 'nobody' was refused: Request for unknown model: "),
        ("nobody/versions/3/infer", b"{}", "a request for model 'nobody' version 3 was refused: Request for unknown"),
        ("echo/infer", b"{", "a request for model 'echo' was refused: failed to parse the request JSON buffer"),
        ("tells/infer", b"{}", "a request for model 'tells' was refused: HTTP end point doesn't support models with"),
        ("nobody/generate", b"{}", "a request for model 'nobody' was refused: Request for unknown model: "),
    ],
)
def test_what_no_model_had_has_its_line(start: Serve, path: str, body: bytes, message: str) -> None:
    server = start(1)
    assert post(server, path, body)[0] >= 400
    server.wait_for_output(rf"\[request id: <id_unknown>\] {message}")


def test_what_no_model_had_over_grpc_has_its_line(start: Serve) -> None:
    server = start(1)
    with ENDPOINTS["grpc"](server) as endpoint, pytest.raises(Exception, match="unknown model"):
        endpoint.ask("nobody", {"X": [1]}, request_id="9")
    server.wait_for_output(r"\[request id: 9\] a request for model 'nobody' was refused: Request for unknown model: ")


@pytest.mark.parametrize("model", ["holds", "chain"])
@pytest.mark.parametrize("way", ["infer", "generate"])
def test_a_request_whose_caller_has_gone_has_an_end(
    start: Serve, tmp_path: Path, notes: Notes, model: str, way: str
) -> None:
    server = start(1)
    connection = HTTPConnection(server.http, timeout=TIMEOUT_S)
    tensor = {"name": "X", "shape": [1], "datatype": "INT32", "data": [1]}
    connection.request(
        "POST", f"/v2/models/{model}/{way}", json.dumps({"inputs": [tensor]} if way == "infer" else {"X": [1]})
    )
    notes.read("begun")
    connection.close()
    if way == "generate":
        server.wait_for_output(rf"model '{model}' version 1 failed after \d+ us: its caller has gone")
    notes.write("go on")
    documents = read(tmp_path / "trace.json.0")
    for head in heads(documents):
        assert list(moments(documents, head["id"]))[-1] in ("REQUEST_END", "HTTP_SEND_END"), documents
        assert "REQUEST_END" in moments(documents, head["id"])
    assert len(heads(documents)) == (1 if model == "holds" else 3)


@pytest.mark.parametrize("model", ["holds", "chain"])
def test_a_request_that_is_lost_with_its_worker_has_an_end(
    start: Serve, tmp_path: Path, notes: Notes, model: str
) -> None:
    server = start(1)
    connection = HTTPConnection(server.http, timeout=TIMEOUT_S)
    tensor = {"name": "X", "shape": [1], "datatype": "INT32", "data": [1]}
    connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}))
    victim = int(notes.read("begun"))
    assert victim in {worker.pid for worker in workers_of(server)}
    os.kill(victim, signal.SIGKILL)
    assert connection.getresponse().status == 503
    connection.close()
    documents = read(tmp_path / "trace.json.0")
    assert len(summarize(documents)) == (1 if model == "holds" else 3)
    assert all("REQUEST_END" in moments(documents, head["id"]) for head in heads(documents))


def test_a_summary_finds_all_that_it_looks_for(start: Serve, tmp_path: Path, notes: Notes) -> None:
    notes.write("go on")
    server = start(4)
    for kind in ENDPOINTS:
        with ENDPOINTS[kind](server) as endpoint:
            endpoint.ask("echo", {"X": [1]})
    post(server, "echo/generate", json.dumps({"X": [1]}))
    with HttpEndpoint(server) as endpoint:
        endpoint.ask("chain", {"X": [1]})
    traces = summarize(read(tmp_path / "trace.json.0"))
    assert [trace.head["model_name"] for trace in traces if "parent_id" not in trace.head] == ["echo"] * 3 + ["chain"]
    assert len(traces) == 6
    inner = {"request", "queue", "compute", "compute input", "compute infer", "compute output"}
    over = {
        endpoint: {endpoint, *parts}
        for endpoint, parts in {
            "http": ("http receive", "http send"),
            "grpc": ("grpc wait and read", "grpc send"),
        }.items()
    }
    http, grpc, generate, chain, *steps = (set(trace.times) for trace in traces)
    assert (http, grpc, generate) == (inner | over["http"], inner | over["grpc"], inner | over["http"])
    assert chain >= over["http"] | {"request"}
    assert steps == [inner, inner]
