"""The log's settings change while the server runs, and every process follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc as grpc_client
from support.endpoints import ENDPOINTS
from support.python_models import add_python_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]
Change = Callable[[ServerProcess, dict[str, Any]], dict[str, Any]]

TALKS = """
class TritonPythonModel:
    def execute(self, requests):
        pb_utils.Logger.log_verbose(f"detail of {requests[0].request_id()}")
        pb_utils.Logger.log_info(f"end of {requests[0].request_id()}")
        return [answer(Y=given(request)) for request in requests]
"""


def over_http(server: ServerProcess, settings: dict[str, Any]) -> dict[str, Any]:
    connection = HTTPConnection(server.http, timeout=60)
    connection.request("POST", "/v2/logging", json.dumps(settings))
    answer = connection.getresponse()
    assert answer.status == 200
    document: dict[str, Any] = json.loads(answer.read())
    connection.close()
    return document


def over_grpc(server: ServerProcess, settings: dict[str, Any]) -> dict[str, Any]:
    with grpc_client.InferenceServerClient(server.grpc) as client:
        answer = client.update_log_settings(settings, as_json=True)["settings"]
    return {name: next(iter(value.values())) for name, value in answer.items()}


@pytest.fixture
def server(repository: Path, serve: Serve) -> ServerProcess:
    add_python_model(repository, "talker", TALKS)
    return serve(repository)


@pytest.mark.parametrize("change", [over_http, over_grpc])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_running_model_and_its_requests_become_verbose_and_quiet_again(
    server: ServerProcess, change: Change, endpoint: str
) -> None:
    with ENDPOINTS[endpoint](server) as client:
        client.ask("talker", {"X": [1]}, request_id="first")
        assert change(server, {"log_verbose_level": 1})["log_verbose_level"] == 1
        client.ask("talker", {"X": [1]}, request_id="second")
        server.wait_for_output("detail of second")
        server.wait_for_output(r"\[request id: second\] model 'talker' version 1 answered after \d+ us")
        change(server, {"log_verbose_level": 0})
        client.ask("talker", {"X": [1]}, request_id="third")
        server.wait_for_output("end of third")
    assert "detail of first" not in server.output
    assert "detail of third" not in server.output
    assert "[request id: first]" not in server.output
    assert server.stop() == 0
    assert "[request id: third]" not in server.output


def test_a_silent_level_is_silent_from_the_answer_on(server: ServerProcess) -> None:
    over_http(server, {"log_info": False})
    with ENDPOINTS["http"](server) as client:
        client.ask("talker", {"X": [1]}, request_id="unheard")
        over_http(server, {"log_info": True})
        client.ask("talker", {"X": [1]}, request_id="heard")
    server.wait_for_output("end of heard")
    assert "end of unheard" not in server.output


def test_lines_become_documents(server: ServerProcess) -> None:
    assert over_http(server, {"log_format": "JSON", "log_verbose_level": 1})["log_format"] == "JSON"
    with ENDPOINTS["http"](server) as client:
        client.ask("talker", {"X": [1]}, request_id="seven")
    line = server.wait_for_output(r'(?m)^\{.*"\[request id: seven\].*$')[0]
    document = json.loads(line)
    assert (document["level"], document["model"], document["request_id"]) == ("verbose", "talker", "seven")
    record = json.loads(server.wait_for_output(r"(?m)^\{.*end of seven.*$")[0])
    assert (record["level"], record["file"], record["instance"]) == ("info", "model.py", "talker_0_0")


def test_a_log_that_starts_in_json_holds_nothing_but_documents(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "talker", TALKS)
    server = serve(repository, "--log-format=JSON", "--log-verbose=1")
    with ENDPOINTS["http"](server) as client:
        client.ask("talker", {"X": [1]}, request_id="seven")
    assert server.stop() == 0
    documents = [json.loads(line) for line in server.output.splitlines()]
    assert {"level", "time", "message"} <= documents[0].keys()
    assert any(document.get("state") == "READY" and document["model"] == "talker" for document in documents)
    assert not any("| talker" in document["message"] for document in documents)


def test_clients_cannot_move_the_log(server: ServerProcess) -> None:
    connection = HTTPConnection(server.http, timeout=60)
    connection.request("POST", "/v2/logging", json.dumps({"log_file": "/tmp/elsewhere", "log_info": False}))
    assert connection.getresponse().status == 501
    connection.close()
    assert over_http(server, {})["log_info"] is True
