"""Graphs under bad input and failing steps: each request ends with an answer that says why."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.graph_steps import Received, Scripted, Steps, node, post_graph, write_graph
from support.models import add_model, times
from support.ports import free_ports
from support.server import ServerDidNotStart, ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]


@pytest.fixture
def steps() -> Iterator[Steps]:
    with Steps() as services:
        yield services


def failure(cause: str) -> tuple[int, str, bytes]:
    text = json.dumps({"error": "Failed to process request", "cause": cause}, separators=(",", ":"))
    return 500, "application/json", text.encode()


def sequence(*urls: str) -> dict[str, object]:
    return {"root": node("Sequence", *({"serviceUrl": url, "data": "$response"} for url in urls))}


def test_a_step_that_nothing_answers_is_an_error_in_the_words_of_go(tmp_path: Path, serve: Serve) -> None:
    (port,) = free_ports(1)
    server = serve(f"--graph={write_graph(tmp_path, sequence(f'http://127.0.0.1:{port}/m'))}")
    cause = f'Post "http://127.0.0.1:{port}/m": dial tcp 127.0.0.1:{port}: connect: connection refused'
    for _ in range(3):
        assert post_graph(server.http, b"{}") == failure(cause)


def test_a_step_that_breaks_off_is_an_error_and_the_next_request_is_served(
    steps: Steps, tmp_path: Path, serve: Serve
) -> None:
    """The first connection ends without an answer, the second is new."""
    answers: list[Scripted | None] = [(200, b"1"), None, (200, b"3")]
    steps.scripts["/m"] = lambda _: answers.pop(0)
    server = serve(f"--graph={write_graph(tmp_path, sequence(steps.url('/m')))}")
    assert post_graph(server.http, b"{}")[2] == b"1"
    assert post_graph(server.http, b"{}") == failure(f'Post "{steps.url("/m")}": EOF')
    assert post_graph(server.http, b"{}")[2] == b"3"


def test_a_predictor_that_comes_late_is_tried_again(tmp_path: Path, serve: Serve) -> None:
    """It was not reached, so another attempt cannot do anything twice; attempts are few."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        server = serve(f"--graph={write_graph(tmp_path, sequence(f'http://127.0.0.1:{port}/m'))}")
        assert post_graph(server.http, b"{}")[0] == 500


def test_a_slow_step_ends_in_time(steps: Steps, tmp_path: Path, serve: Serve) -> None:
    may_answer = threading.Event()

    def slow(_: Received) -> Scripted:
        may_answer.wait(TIMEOUT_S)
        return 200, b"late"

    steps.scripts["/slow"] = slow
    graph = write_graph(tmp_path, sequence(steps.url("/slow")), routerTimeouts={"serviceClient": 1})
    server = serve(f"--graph={graph}")
    late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert post_graph(server.http, b"{}") == failure(f'Post "{steps.url("/slow")}": {late}')
    may_answer.set()


def test_a_slow_graph_ends_in_time(steps: Steps, tmp_path: Path, serve: Serve) -> None:
    may_answer = threading.Event()

    def slow(_: Received) -> Scripted:
        may_answer.wait(TIMEOUT_S)
        return 200, b"late"

    steps.scripts["/slow"] = slow
    server = serve(f"--graph={write_graph(tmp_path, sequence(steps.url('/slow')), timeout=1)}")
    status, _, body = post_graph(server.http, b"{}")
    may_answer.set()
    assert (status, json.loads(body)["cause"]) == (
        504,
        "the graph was not done in 1 s: its timeout, or serverWrite of routerTimeouts",
    )


def test_a_caller_that_leaves_withdraws_the_call_of_its_step(steps: Steps, tmp_path: Path, serve: Serve) -> None:
    """The step's server sees its connection end while it still works."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = serve(f"--graph={write_graph(tmp_path, sequence(f'http://127.0.0.1:{port}/m', steps.url('/never')))}")
        host, _, own = server.http.rpartition(":")
        with socket.create_connection((host, int(own))) as caller:
            caller.sendall(b"POST / HTTP/1.1\r\nHost: graph\r\nContent-Length: 2\r\n\r\n{}")
            step, _ = listener.accept()
            step.settimeout(TIMEOUT_S)
            received = b""
            while not received.endswith(b"{}"):
                received += step.recv(4096)
        with step:
            assert step.recv(1) == b""
    assert not steps.received


def test_answers_of_another_shape_are_named(steps: Steps, tmp_path: Path, serve: Serve) -> None:
    graph = write_graph(
        tmp_path,
        {
            "root": node(
                "Switch",
                *({"nodeName": name, "condition": name} for name in ("array", "text", "condition")),
            ),
            "array": node("Ensemble", {"serviceUrl": steps.says("/array", 200, [1])}),
            "text": node("Ensemble", {"serviceUrl": steps.says("/text", 200, b"<p>")}),
            "condition": node(
                "Sequence",
                {"serviceUrl": steps.says("/plain", 200, b"plain")},
                {"serviceUrl": steps.url("/never"), "condition": "a"},
            ),
        },
    )
    server = serve(f"--graph={graph}")
    array = "json: cannot unmarshal array into Go value of type map[string]interface {}"
    text = r"invalid character '\u003c' looking for beginning of value"
    assert post_graph(server.http, {"array": 1}) == failure(array)
    assert post_graph(server.http, {"text": 1})[2].decode() == failure("CAUSE")[2].decode().replace("CAUSE", text)
    assert post_graph(server.http, {"condition": 1}) == failure("invalid response")
    assert not steps.bodies("/never")


def test_bodies_over_the_limit_are_refused_both_ways(steps: Steps, tmp_path: Path, serve: Serve) -> None:
    steps.scripts["/large"] = lambda _: (200, b"1" * 5000)
    server = serve(
        f"--graph={write_graph(tmp_path, sequence(steps.url('/echo'), steps.url('/large')))}",
        "--http-max-input-size=4096",
    )
    status, _, body = post_graph(server.http, b"1" * 5000)
    assert (status, b"exceeds the maximum allowed input size of 4096" in body) == (413, True)
    assert not steps.received
    status, _, body = post_graph(server.http, b"1" * 4096)
    assert (status, b"has more than the 4096 bytes that are allowed" in body) == (500, True)


def test_a_model_that_is_not_here_is_named(tmp_path: Path, serve: Serve) -> None:
    add_model(tmp_path / "models", "double", times())
    graph = write_graph(tmp_path, {"root": node("Sequence", {"serviceName": "absent"})})
    server = serve(tmp_path / "models", f"--graph={graph}")
    assert post_graph(server.http, {"instances": [[1, 2]]}) == (
        404,
        "application/json",
        b'{"error":"Model with name absent does not exist."}',
    )


def test_a_server_that_stops_finishes_the_requests_of_its_graph(steps: Steps, tmp_path: Path, serve: Serve) -> None:
    """Also where a model of its own is the next step."""
    add_model(tmp_path / "models", "double", times())
    may_answer = threading.Event()

    def held(received: Received) -> Scripted:
        may_answer.wait(TIMEOUT_S)
        return 200, received.body

    steps.scripts["/held"] = held
    nodes = {
        "root": node("Sequence", {"serviceUrl": steps.url("/held")}, {"serviceName": "double", "data": "$response"})
    }
    server = serve(tmp_path / "models", f"--graph={write_graph(tmp_path, nodes)}")
    answers: list[tuple[int, str, bytes]] = []
    caller = threading.Thread(target=lambda: answers.append(post_graph(server.http, {"instances": [[1, 2]]})))
    caller.start()
    until(lambda: steps.received, "the step is called")
    server.signal()
    server.wait_for_output("Waiting for in-flight requests to complete.")
    may_answer.set()
    caller.join(TIMEOUT_S)
    assert [(answer[0], json.loads(answer[2])) for answer in answers] == [(200, {"predictions": [[2, 4]]})]
    assert server.wait() == 0


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ({"root": node("Sequence", {"nodeName": "root"})}, "requests would go round: root → root"),
        ({"root": node("Sequence", {"serviceUrl": "ftp://a/"})}, "'ftp://a/' begins neither with http:// nor"),
        ({"a": node("Sequence", {"serviceName": "a"})}, "requests begin at the node 'root', which is missing"),
    ],
)
def test_a_server_with_a_graph_that_cannot_be_run_does_not_start(
    tmp_path: Path, serve: Serve, nodes: dict[str, object], text: str
) -> None:
    with pytest.raises(ServerDidNotStart) as raised:
        serve(f"--graph={write_graph(tmp_path, nodes)}")
    assert text in raised.value.output
    assert raised.value.exit_code == 1
