"""Endpoints that stream, calls that are withdrawn, and endpoints that are restricted or cannot be."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.call_models import add_call_model
from support.notes import Notes
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Start = Callable[..., ServerProcess]

# Sends what the body lists, one by one: parameters and body of each response, or the text of an error.
SAYS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for part in json.loads(body(request)):
                if isinstance(part, str):
                    sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(part)))
                else:
                    text = part.pop("text")
                    sender.send(reply(text, **part))
            sender.send(flags=FINAL)
"""

# Sends a number whenever the test lets it, until the client has left.
STEPS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            note("begun")
            for index in range(3):
                while not sender.is_cancelled() and not (NOTES / f"step{index}").exists():
                    time.sleep(0.002)
                if sender.is_cancelled():
                    note("cancelled")
                    break
                sender.send(reply(str(index)))
            sender.send(flags=FINAL)
"""

# Waits for the client to leave.
WATCHES = """
class TritonPythonModel:
    def execute(self, requests):
        note("begun")
        while not requests[0].is_cancelled():
            time.sleep(0.002)
        note("cancelled")
        return [reply(b"late") for _ in requests]
"""


@pytest.fixture
def server(repository: Path, start: Start) -> ServerProcess:
    add_call_model(repository, "says", SAYS, stream=True)
    add_call_model(repository, "steps", STEPS, stream=True)
    add_call_model(repository, "watches", WATCHES)
    return start("--http-restricted-api=inference:Key=word")


def ask(
    server: ServerProcess, path: str, body: object, accept: str = ""
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request("POST", path, json.dumps(body), {"Accept": accept} if accept else {})
    return connection, connection.getresponse()


def read(server: ServerProcess, body: object, accept: str = "") -> tuple[int, str, bytes]:
    connection, answer = ask(server, "/says", body, accept)
    found = answer.status, answer.headers["Content-Type"], answer.read()
    connection.close()
    return found


EVENTS = "text/event-stream; charset=utf-8"
LINES = "application/x-ndjson"


def test_responses_are_events_or_lines(server: ServerProcess) -> None:
    parts = [{"text": '{"a": 1}'}, {"text": "two\nlines"}]
    for accept in ("", "*/*", "text/event-stream"):
        status, kind, body = read(server, parts, accept)
        assert (status, kind, body) == (200, EVENTS, b'data: {"a": 1}\n\ndata: two\ndata: lines\n\n')
    assert read(server, parts, LINES) == (200, LINES, b'{"a": 1}\ntwo lines\n')
    named = [{"text": "1", "content_type": LINES}, {"text": "2"}]
    assert read(server, named) == (200, LINES, b"1\n2\n")
    assert read(server, named, "text/event-stream") == (200, EVENTS, b"data: 1\n\ndata: 2\n\n")


def test_the_first_response_decides_on_status_and_headers(server: ServerProcess) -> None:
    first = {"text": "1", "status": 202, "headers": '{"X-First": "yes"}'}
    connection, answer = ask(server, "/says", [first, {"text": "2", "status": 500}])
    assert (answer.status, answer.headers["X-First"], answer.headers["Cache-Control"]) == (202, "yes", "no-cache")
    assert answer.read() == b"data: 1\n\ndata: 2\n\n"
    connection.close()


def test_a_stream_that_begins_with_an_error_is_a_plain_answer(server: ServerProcess) -> None:
    refusal = {"text": '{"detail": "no"}', "status": 422, "content_type": "application/json"}
    assert read(server, [refusal, {"text": "2"}], LINES) == (422, "application/json", b'{"detail": "no"}')
    assert read(server, ["no luck"]) == (500, "application/json", b'{"error":"no luck"}')
    assert read(server, []) == (200, EVENTS, b"")


def test_an_error_behind_the_first_response_ends_the_stream(server: ServerProcess) -> None:
    parts = [{"text": "1"}, "no luck"]
    assert read(server, parts)[2] == b'data: 1\n\nevent: error\ndata: {"error":"no luck"}\n\n'
    assert read(server, parts, LINES)[2] == b'1\n{"error":"no luck"}\n'


def test_a_response_arrives_before_the_next_is_made(server: ServerProcess, notes: Notes) -> None:
    notes.write("step0")
    connection, answer = ask(server, "/steps", None, LINES)
    assert answer.readline() == b"0\n"
    notes.write("step1")
    assert answer.readline() == b"1\n"
    answer.close()
    connection.close()
    notes.read("cancelled")


def test_a_call_whose_client_leaves_is_cancelled(server: ServerProcess, notes: Notes) -> None:
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request("POST", "/watches", b"")
    notes.read("begun")
    connection.close()
    notes.read("cancelled")


# Answers when the test lets it.
HELD = """
class TritonPythonModel:
    def execute(self, requests):
        note("begun")
        await_note("go")
        return [reply(b"done") for _ in requests]
"""


def test_a_server_that_stops_finishes_calls_and_takes_no_more(repository: Path, start: Start, notes: Notes) -> None:
    add_call_model(repository, "held", HELD)
    server = start("--exit-timeout-secs=600")
    first = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    first.request("POST", "/held", b"")
    notes.read("begun")
    server.signal()

    def refusal(path: str) -> tuple[int, bytes] | None:
        try:
            connection, answer = ask(server, path, "x" * 100_000)
        except (ConnectionError, http.client.HTTPException):
            return None
        with contextlib.closing(connection):
            return answer.status, answer.read()

    stopping = (503, b'{"error":"Server is stopping, it does not accept new requests"}')
    until(lambda: refusal("/v2/repository/index") == stopping)
    assert refusal("/held") == stopping
    notes.write("go")
    answer = first.getresponse()
    assert (answer.status, answer.read()) == (200, b"done")
    first.close()
    assert server.wait() == 0


def test_an_endpoint_has_a_restricted_group_of_its_own(repository: Path, start: Start) -> None:
    add_call_model(repository, "says", SAYS, stream=True)
    server = start("--http-restricted-api=endpoint,openapi:Key=word")
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    for path in ("/says", "/nobody", "/docs", "/openapi.json"):
        connection.request("POST", path, b"[]")
        answer = connection.getresponse()
        assert (answer.status, "expecting header 'Key'" in json.loads(answer.read())["error"]) == (403, True), path
    for path, status in (("/says", 200), ("/nobody", 404), ("/docs", 405)):
        connection.request("POST", path, b"[]", {"Key": "word"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status, path
    connection.request("GET", "/v2/health/ready")
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize(
    ("name", "config", "reason"),
    [
        ("docs", "", "'/docs' is a path of the server's own"),
        ("m", "model_transaction_policy { decoupled: true }", "'stream' is false, but the model_transaction_policy"),
        ("m", "sequence_batching { }", "plain requests belong to no sequence"),
    ],
)
def test_a_model_that_can_have_no_endpoint_does_not_load(
    repository: Path, start: Start, name: str, config: str, reason: str
) -> None:
    add_call_model(repository, name, WATCHES, config=config)
    add_call_model(repository, "other", WATCHES)
    server = start("--exit-on-error=false", all_load=False)
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request("POST", "/v2/repository/index")
    reasons = {one["name"]: one.get("reason", "") for one in json.loads(connection.getresponse().read())}
    assert reason in reasons[name], reasons
    assert reasons["other"] == ""
    connection.request("POST", f"/{name}", b"")
    assert connection.getresponse().status == (405 if name == "docs" else 404), "it is the page of the other model"
    connection.close()
