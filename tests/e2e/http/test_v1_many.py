"""A body of the V1 protocol that is many requests: answered as one while the server stops, and withdrawn as one."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.notes import Notes
from support.python_models import add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

# More than wait for the model at a time.
INSTANCES = [[number] for number in range(40)]
AT_ONCE = 32
PREDICT = "/v1/models/held:predict"
BODY = json.dumps({"instances": INSTANCES})

# Each request by itself; all wait until the test lets them go on.
HELD = """
class TritonPythonModel:
    def execute(self, requests):
        note("running")
        await_note("go")
        return [answer(Y=given(request)) for request in requests]
"""


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def server(tmp_path: Path, notes: Notes, serve: Callable[..., ServerProcess]) -> ServerProcess:
    add_python_model(tmp_path / "models", "held", HELD, signature="X: INT32[1] -> Y: INT32[1]")
    return serve(tmp_path / "models", "--exit-grace-secs=0", environment=notes.environment)


def executed(server: ServerProcess) -> int:
    """Requests that the model has answered."""
    with closing(connect(server)) as connection:
        connection.request("GET", "/v2/models/held/stats")
        (model,) = json.loads(connection.getresponse().read())["model_stats"]
    return int(model["inference_stats"]["success"]["count"])


def begun(server: ServerProcess) -> int:
    """Requests that the model's worker holds: one at work, and others ahead of it."""
    with closing(connect(server)) as connection:
        connection.request("GET", "/v2/models/held/explain")
        (model,) = json.loads(connection.getresponse().read())["models"]
    return int(model["queue"]["busy_instances"])


def connect(server: ServerProcess) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)


def is_refusing(server: ServerProcess) -> bool:
    """Whether the server refuses new requests by now."""
    with closing(connect(server)) as connection:
        connection.request("POST", PREDICT, b"{}")
        return connection.getresponse().status == 503


def test_a_server_that_stops_answers_all_of_a_body(server: ServerProcess, notes: Notes) -> None:
    with closing(connect(server)) as connection:
        connection.request("POST", PREDICT, BODY)
        notes.read("running")
        server.signal()
        until(lambda: is_refusing(server))
        notes.write("go")
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())) == (200, {"predictions": INSTANCES})


def test_a_client_that_leaves_withdraws_what_has_not_begun(server: ServerProcess, notes: Notes) -> None:
    with closing(connect(server)) as connection:
        connection.request("POST", PREDICT, BODY)
        notes.read("running")
        until(lambda: begun(server) == AT_ONCE)
    until(lambda: begun(server) == 1)
    notes.write("go")
    with closing(connect(server)) as connection:
        connection.request("POST", PREDICT, json.dumps({"instances": [[7]]}))
        assert json.loads(connection.getresponse().read()) == {"predictions": [[7]]}
    assert executed(server) < AT_ONCE
