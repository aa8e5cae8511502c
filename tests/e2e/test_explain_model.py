"""`alipes explain` and its route: what waits, what keeps the next batch, what was decided, told by a live server."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as http_client
from support import text_models
from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

# Waits for company far longer than a test lasts, unless enough comes.
_LONG_DELAY = """
max_batch_size: 4
dynamic_batching {
  preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 60000000
  priority_levels: 2 default_priority_level: 2 default_queue_policy { max_queue_size: 9 }
}
instance_group { count: 1 kind: KIND_CPU }
"""

# Holds its instance until the test releases it.
_HELD = """
class TritonPythonModel:
    def execute(self, requests):
        while not os.path.exists(os.environ["GO_ON"]):
            threading.Event().wait(0.01)
        return [good(text(request)) for request in requests]
"""

_ENSEMBLE = """
platform: "ensemble"
input [ { name: "HOW" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] } ]
ensemble_scheduling { max_inflight_requests: 2 step [ {
  model_name: "held" model_version: -1
  input_map { key: "HOW" value: "HOW" } output_map { key: "OUT" value: "OUT" }
} ] }
"""


@pytest.fixture(scope="module")
def go_on(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notes") / "go-on"


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory, go_on: Path) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "patient", times(2.0), config=_LONG_DELAY)
    add_model(repository, "eager", times(2.0), config="max_batch_size: 4")
    text_models.add_model(repository, "held", _HELD)
    (repository / "around" / "1").mkdir(parents=True)
    (repository / "around" / "config.pbtxt").write_text(_ENSEMBLE)
    # How many requests a worker has in hand is told here, so that it may have as many as usual.
    return serve_module(repository, "--worker-memory=full", environment={"GO_ON": str(go_on)})


def get(server: ServerProcess, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def explanation(server: ServerProcess, model: str) -> dict[str, Any]:
    """The explanation of a model."""
    status, document = get(server, f"/v2/models/{model}/explain")
    assert status == 200, document
    found: dict[str, Any] = document["models"][0]
    return found


def infer(server: ServerProcess, model: str, rows: int) -> None:
    tensor = http_client.InferInput("X", [rows, 2], "FP32")
    tensor.set_data_from_numpy(np.ones((rows, 2), np.float32))
    with http_client.InferenceServerClient(server.http, network_timeout=TIMEOUT_S) as client:
        client.infer(model, [tensor])


def command(server: ServerProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "alipes", "explain", *arguments, f"--url=http://{server.http}"]
    return subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def is_held_back(queue: dict[str, Any]) -> bool:
    """Whether two requests wait, and the instance that was started for them has found that they wait for company."""
    return bool(queue["waiting"] == 2 and queue["decisions"] and queue["decisions"][0]["decision"] == "waits")


def test_waiting_requests_are_shown_with_their_reason(server: ServerProcess) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(infer, server, "patient", 1) for _ in range(2)]
        until(lambda: is_held_back(explanation(server, "patient")["queue"]))
        model = explanation(server, "patient")
        printed = command(server, "patient").stdout
        waiting.append(pool.submit(infer, server, "patient", 1))
        [one.result() for one in waiting]
    assert model["scheduling"] == {
        "kind": "dynamic",
        "max_batch_size": 4,
        "preferred_batch_sizes": [3],
        "max_queue_delay_us": 60_000_000,
        "limits": {"priority_levels": 2, "timeout_us": 0, "delayed": False, "max_queue_size": 9},
    }
    queue = model["queue"]
    assert (queue["hold"], queue["instances"], queue["busy_instances"]) == ("company", 1, 0)
    assert (queue["next"]["requests"], queue["next"]["why"]) == (2, "company")
    assert 0 < queue["next"]["due_in_us"] <= 60_000_000
    assert [request["rows"] for request in queue["oldest"]] == [1, 1]
    assert queue["decisions"][0]["decision"] == "waits"
    assert "the requests wait for company" in printed
    assert "2 priority levels, no more than 9 may wait" in printed
    after = explanation(server, "patient")["queue"]
    assert (after["waiting"], after["hold"]) == (0, "nothing_waits")
    newest = after["decisions"][0]
    assert (newest["decision"], newest["requests"], newest["rows"], newest["why"]) == ("took", 3, 3, "preferred")


def test_the_last_hundred_decisions_are_shown(server: ServerProcess) -> None:
    for _ in range(110):
        infer(server, "eager", 2)
    decisions = explanation(server, "eager")["queue"]["decisions"]
    assert len(decisions) == 100
    assert {(decision["decision"], decision["rows"], decision["why"]) for decision in decisions} == {
        ("took", 2, "no_delay")
    }
    ages = [decision["ago_us"] for decision in decisions]
    assert ages == sorted(ages)


def test_an_ensemble_leads_to_the_model_that_holds_it_up(server: ServerProcess, go_on: Path) -> None:
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(text_models.ask, server, "around", str(number)) for number in range(3)]
        try:
            until(lambda: explanation(server, "around")["ensemble"]["requests"] == 3)
            until(lambda: explanation(server, "around")["ensemble"]["held_back"] == 1)
            until(lambda: explanation(server, "held")["workers"][0]["requests"] == 2)
            models = get(server, "/v2/models/around/explain")[1]["models"]
            printed = command(server, "around").stdout
        finally:
            go_on.touch()
        assert sorted(answer.result() for answer in answers) == [(200, "0"), (200, "1"), (200, "2")]
    assert [model["name"] for model in models] == ["around", "held"]
    assert models[0]["ensemble"] == {"requests": 3, "held_back": 1, "members": ["held:1"]}
    assert "queue" not in models[0]
    assert models[1]["workers"] == [{"instance": "held_0_0", "up": True, "requests": 2}]
    assert "held_0_0 (2 in hand)" in printed
    until(lambda: explanation(server, "around")["ensemble"]["requests"] == 0)


def test_the_command_prints_what_the_route_answers(server: ServerProcess) -> None:
    printed = json.loads(command(server, "held", "--json", "--model-version=1").stdout)
    assert [model["name"] for model in printed["models"]] == ["held"]
    view = command(server, "eager")
    assert view.returncode == 0
    assert "eager, version 1: dynamic batches of up to 4 rows" in view.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "the server answers 404: Request for unknown model: 'nobody' is not found"),
        (
            ["held", "--model-version=7"],
            "the server answers 404: Request for unknown model: 'held' version 7 is not found",
        ),
    ],
)
def test_the_command_says_what_the_server_refuses(server: ServerProcess, arguments: list[str], message: str) -> None:
    refused = command(server, *arguments)
    assert refused.returncode == 1
    assert message in " ".join(refused.stderr.split())


def test_explaining_is_restricted_with_the_statistics(repository: Path, serve: Serve) -> None:
    add_model(repository, "m")
    server = serve(repository, "--http-restricted-api=statistics:key=word")
    assert get(server, "/v2/models/m/explain")[0] == 403
    assert get(server, "/v2/models/m/explain", {"key": "word"})[0] == 200
    assert command(server, "m", "--header=key: word").returncode == 0
    assert "the server answers 403" in command(server, "m").stderr
