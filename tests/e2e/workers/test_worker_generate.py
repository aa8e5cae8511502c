"""`generate` and `generate_stream`: events as they are made, and none for clients that have left."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.notes import Notes
from support.processes import under_way
from support.python_models import DECOUPLED, add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Start = Callable[..., ServerProcess]

# Sends a response whenever the test lets it, until the client has left.
STEPS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            note("begun")
            for index in range(int(given(request)[0])):
                while not sender.is_cancelled() and not (NOTES / f"step{index}").exists():
                    time.sleep(0.002)
                if sender.is_cancelled():
                    note("cancelled")
                    break
                sender.send(answer(Y=np.array([index], np.int32)))
            sender.send(flags=FINAL)
"""

# Holds each request until the test lets it go, and notes which ones it has seen.
HOLDS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            note(f"seen{int(given(request)[0])}")
            await_note("release")
        return [answer(Y=given(request)) for request in requests]
"""

# Sends as fast as it may, notes after each response how many it has sent, and ends when the client has left.
NUMBERS = 1 << 16
FLOODS = f"""
class TritonPythonModel:
    def execute(self, requests):
        sender, index = requests[0].get_response_sender(), 0
        while not sender.is_cancelled():
            sender.send(answer(Y=np.full({NUMBERS}, index % 10, np.int32)))
            index += 1
            note("sent", index)
        note("cancelled")
"""

# Events that may be under way to a reader: what model and server hold between them, and, at two characters a number,
# what the buffers of a connection take in.
UNDER_WAY = 64 + (64 << 20) // (2 * NUMBERS)


@pytest.fixture
def server(repository: Path, start: Start) -> ServerProcess:
    add_python_model(repository, "steps", STEPS, config=DECOUPLED)
    add_python_model(repository, "floods", FLOODS, config=DECOUPLED)
    add_python_model(repository, "holds", HOLDS)
    add_python_model(repository, "echo")
    return start()


def ask(server: ServerProcess, path: str, body: object) -> http.client.HTTPConnection:
    """Sends a request; the answer is still to be read."""
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request("POST", f"/v2/models/{path}", json.dumps(body))
    return connection


def events(answer: http.client.HTTPResponse) -> Iterator[Any]:
    """The events of an answer, each as it comes."""
    for line in iter(answer.readline, b""):
        if line != b"\n":
            assert line.startswith(b"data: "), line
            yield json.loads(line.removeprefix(b"data: "))


def leave(server: ServerProcess, connection: http.client.HTTPConnection) -> None:
    """Closes a connection that the server knows of, and returns once it has noticed."""
    port = connection.sock.getsockname()[1]
    process = psutil.Process(server.process.pid)

    def is_known() -> bool:
        return port in {peer.raddr.port for peer in process.net_connections("tcp") if peer.raddr}

    until(is_known, "accepted")
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    until(lambda: not is_known(), "noticed")


def test_an_event_arrives_before_the_next_is_made(server: ServerProcess, notes: Notes) -> None:
    connection = ask(server, "steps/generate_stream", {"X": 3})
    notes.write("step0")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    coming = events(answer)
    for index in range(3):
        assert next(coming) == {"Y": index, "model_name": "steps", "model_version": "1"}
        notes.write(f"step{index + 1}")
    assert list(coming) == []
    connection.request("POST", "/v2/models/echo/generate", '{"X":[7,8]}')
    assert json.loads(connection.getresponse().read())["Y"] == [7, 8]
    connection.close()


def test_a_model_is_held_back_while_its_events_are_unread(server: ServerProcess, notes: Notes) -> None:
    connection = ask(server, "floods/generate_stream", {"X": 1})
    with connection.getresponse() as answer:
        read = events(answer)
        for number in range(101):
            if number % 50 == 0:
                until(lambda: _stands_still(notes), "the model was not held back")
                assert int(notes.read("sent")) - number <= UNDER_WAY
            assert next(read)["Y"] == [number % 10] * NUMBERS
    leave(server, connection)
    notes.read("cancelled")


def _stands_still(notes: Notes) -> bool:
    """Whether the model sends nothing for a while. One that is never held back never does."""
    before = notes.read("sent")
    time.sleep(0.1)
    return notes.read("sent") == before


@pytest.mark.parametrize("heard", [0, 1])
def test_a_model_learns_that_the_reader_of_its_events_has_gone(server: ServerProcess, notes: Notes, heard: int) -> None:
    connection = ask(server, "steps/generate_stream", {"X": 5})
    if heard:
        notes.write("step0")
        assert next(events(connection.getresponse()))["Y"] == 0
    notes.read("begun")
    leave(server, connection)
    notes.read("cancelled")


@pytest.mark.parametrize("path", ["holds/infer", "holds/generate", "holds/generate_stream"])
def test_a_waiting_request_is_dropped_when_its_client_leaves(server: ServerProcess, notes: Notes, path: str) -> None:
    first = ask(server, "holds/generate", {"X": 1})
    notes.read("seen1")
    tensor = {"name": "X", "shape": [1], "datatype": "INT32", "data": [2]}
    body: object = {"inputs": [tensor]} if path.endswith("infer") else {"X": 2}
    leaving, staying = ask(server, path, body), ask(server, "holds/generate", {"X": 3})
    until(lambda: under_way(server, "holds") == 3)
    leave(server, leaving)
    until(lambda: under_way(server, "holds") == 2)
    notes.write("release")
    for connection, value in ((first, 1), (staying, 3)):
        assert json.loads(connection.getresponse().read())["Y"] == value
        connection.close()
    assert "seen3" in notes.names()
    assert "seen2" not in notes.names()


def test_a_stream_that_ends_at_once_is_an_empty_answer(server: ServerProcess) -> None:
    connection = ask(server, "steps/generate_stream", {"X": 0})
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"")
    connection.close()
