"""Graphs that a decoupled model ends: its responses are the graph's, one by one."""

from __future__ import annotations

import http.client
import json
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.graph_steps import get_document, node, post_graph, write_graph
from support.notes import Notes
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

Serve = Callable[..., ServerProcess]

# Sends one response, and ends when its caller has left.
WATCHES = """
class TritonPythonModel:
    def execute(self, requests):
        sender = requests[0].get_response_sender()
        sender.send(answer(Y=given(requests[0])))
        while not sender.is_cancelled():
            time.sleep(0.002)
        sender.send(flags=FINAL)
        note("responses cancelled")
"""

# Answers nobody, and ends when its caller has left.
WAITS = """
class TritonPythonModel:
    def execute(self, requests):
        note("waits")
        while not requests[0].is_cancelled():
            time.sleep(0.002)
        note("step cancelled")
        return [answer(Y=given(request)) for request in requests]
"""

# The first number of a request chooses its way.
NODES = {
    "root": node(
        "Switch",
        {"nodeName": "one", "condition": "inputs.0.data.#(==100)"},
        {"nodeName": "watched", "condition": "inputs.0.data.#(==200)"},
        {"nodeName": "held", "condition": "inputs.0.data.#(==300)"},
        {"nodeName": "counted", "condition": "inputs"},
    ),
    "one": node("Sequence", {"serviceName": "echo"}),
    "watched": node("Sequence", {"serviceName": "echo"}, {"serviceName": "watches", "data": "$response"}),
    "held": node("Sequence", {"serviceName": "waits"}, {"serviceName": "counts", "data": "$response"}),
    "counted": node(
        "Sequence",
        {"serviceName": "echo", "dependency": "Hard"},
        {"nodeName": "drawn", "data": "$response"},
    ),
    "drawn": node("Splitter", {"serviceName": "counts", "weight": 100}),
}


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def start(tmp_path: Path, notes: Notes, serve: Serve) -> Callable[..., ServerProcess]:
    repository = tmp_path / "models"
    add_python_model(repository, "echo")
    add_python_model(repository, "waits", WAITS)
    add_python_model(repository, "counts", REPORTS, config=DECOUPLED)
    add_python_model(repository, "watches", WATCHES, config=DECOUPLED)

    def run(nodes: dict[str, Any] = NODES, **spec: Any) -> ServerProcess:
        graph = write_graph(tmp_path, nodes, **spec)
        return serve(repository, f"--graph={graph}", environment=notes.environment)

    return run


def ask(server: ServerProcess, verb: str, *numbers: int) -> tuple[http.client.HTTPConnection, Any]:
    """The connection and the answer, whose body is still to be read."""
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request("POST", f"/v2/models/flowers/{verb}", json.dumps({"X": list(numbers)}))
    return connection, connection.getresponse()


def events(answer: http.client.HTTPResponse) -> Iterator[Any]:
    for line in iter(answer.readline, b""):
        if line != b"\n":
            yield json.loads(line.removeprefix(b"data: "))


def tensor(*numbers: int) -> grpc_client.InferInput:
    made = grpc_client.InferInput("X", [len(numbers)], "INT32")
    made.set_data_from_numpy(np.array(numbers, np.int32))
    return made


def test_the_responses_of_the_last_step_are_events(start: Callable[..., ServerProcess]) -> None:
    server = start()
    connection, answer = ask(server, "generate_stream", 5, 6, 7)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    expected = [{"Y": number, "model_name": "flowers", "model_version": "1"} for number in (5, 6, 7)]
    assert list(events(answer)) == expected
    connection.close()
    # The way of one response is one event, and one answer.
    connection, answer = ask(server, "generate_stream", 100)
    assert [event["Y"] for event in events(answer)] == [100]
    connection.close()
    connection, answer = ask(server, "generate", 100)
    assert json.loads(answer.read()) == {"Y": 100, "model_name": "flowers", "model_version": "1"}
    connection.close()
    connection, answer = ask(server, "generate", 1, 2)
    assert "exactly 1 response" in json.loads(answer.read())["error"]
    connection.close()


def test_requests_of_one_stream_share_a_graph(start: Callable[..., ServerProcess]) -> None:
    server = start()
    came: queue.Queue[tuple[Any, Any]] = queue.Queue()
    seen: dict[str, list[Any]] = {"one": [], "many": []}
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: came.put((result, error)))
        for name, numbers in (("many", (5, 6, 7)), ("one", (100,))):
            client.async_stream_infer("flowers", [tensor(*numbers)], request_id=name, enable_empty_final_response=True)
        ends = 0
        while ends < 2:
            result, error = came.get(timeout=TIMEOUT_S)
            assert error is None
            answer = result.get_response()
            assert answer.model_name == "flowers"
            if answer.outputs:
                assert answer.model_version == "1"
                seen[answer.id] += result.as_numpy("Y").tolist()
            ends += answer.parameters["triton_final_response"].bool_param
        client.async_stream_infer("flowers", [tensor(1)], model_version="2")
        assert "'flowers' version 2 is not found" in came.get(timeout=TIMEOUT_S)[1].message()
        client.stop_stream()
    assert seen == {"one": [100], "many": [5, 6, 7]}


def test_one_response_of_a_graph_that_streams_is_refused(start: Callable[..., ServerProcess]) -> None:
    """Only where its way ends with the decoupled model."""
    server = start()
    tensors = {"inputs": [{"name": "X", "datatype": "INT32", "shape": [1], "data": [1]}]}
    status, _, body = post_graph(server.http, tensors, "/v2/models/flowers/infer")
    assert (status, "ends with the decoupled model 'counts'" in json.loads(body)["error"]) == (501, True)
    tensors["inputs"][0]["data"] = [100]
    status, _, body = post_graph(server.http, tensors, "/v2/models/flowers/infer")
    assert (status, json.loads(body)["outputs"][0]["data"]) == (200, [100])


def test_a_reader_that_leaves_cancels_the_steps_of_a_graph(start: Callable[..., ServerProcess], notes: Notes) -> None:
    """The step that answers, and a step before it."""
    server = start()
    connection, answer = ask(server, "generate_stream", 200)
    assert next(events(answer))["Y"] == 200
    answer.close()
    connection.close()
    notes.read("responses cancelled")
    notes.remove("responses cancelled")
    with grpc_client.InferenceServerClient(server.grpc) as client:
        came: queue.Queue[tuple[Any, Any]] = queue.Queue()
        client.start_stream(lambda result, error: came.put((result, error)))
        client.async_stream_infer("flowers", [tensor(200)])
        assert came.get(timeout=TIMEOUT_S)[0].as_numpy("Y").tolist() == [200]
        client.stop_stream(cancel_requests=True)
        notes.read("responses cancelled")
        client.start_stream(lambda result, error: came.put((result, error)))
        client.async_stream_infer("flowers", [tensor(300)])
        notes.read("waits")
        client.stop_stream(cancel_requests=True)
    notes.read("step cancelled")


def test_a_stream_that_does_not_begin_in_time_ends(start: Callable[..., ServerProcess], notes: Notes) -> None:
    connection, answer = ask(start(timeout=1), "generate_stream", 300)
    assert (answer.status, [event["error"] for event in events(answer)]) == (
        400,
        ["the graph was not done in 1 s: its timeout, or serverWrite of routerTimeouts"],
    )
    connection.close()
    notes.read("step cancelled")


@pytest.mark.parametrize(
    ("nodes", "place"),
    [
        ({"root": node("Sequence", {"serviceName": "counts"}, {"serviceName": "echo"})}, "spec.nodes.root.steps[0]"),
        ({"root": node("Ensemble", {"name": "c", "serviceName": "counts"})}, "spec.nodes.root.steps[0] ('c')"),
    ],
)
def test_a_decoupled_model_that_cannot_end_a_graph_is_not_loaded(
    start: Callable[..., ServerProcess], nodes: dict[str, Any], place: str
) -> None:
    server = start(nodes)
    reason = f"model counts is decoupled, and the graph needs one response of it at {place}."
    status, document = get_document(server.http, "/v2/models/counts/ready")
    assert (status, reason in document["error"]) == (404, True), document
    assert reason in server.output
