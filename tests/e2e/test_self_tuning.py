"""Models that tune themselves, live: what is changed and why, told by a server that answers correctly meanwhile."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import tritonclient.http as http_client
from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

_CLIENTS = 8

# Waits for company as long as the objective allows altogether, so that every request misses it until the delay is cut.
_IMPATIENT = """
max_batch_size: 64
dynamic_batching { max_queue_delay_microseconds: 40000 }
instance_group { count: 2 kind: KIND_CPU }
parameters { key: "tuning.objective_p99_ms" value: { string_value: "40" } }
parameters { key: "tuning.max_instances" value: { string_value: "1" } }
parameters { key: "tuning.period_ms" value: { string_value: "50" } }
"""

_WORKER = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", 2 * rows)]) for rows in inputs]
"""

_PORTS = """
backend: "python"
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""

_STEP = _PORTS.replace('"python"', '"softmax"')


@pytest.fixture
def server(repository: Path, serve: Serve) -> ServerProcess:
    add_model(repository, "tuned", times(2.0), config=_IMPATIENT)
    (repository / "worker" / "1").mkdir(parents=True)
    (repository / "worker" / "1" / "model.py").write_text(_WORKER)
    (repository / "worker" / "config.pbtxt").write_text(_PORTS + _IMPATIENT)
    (repository / "step" / "1").mkdir(parents=True)
    (repository / "step" / "config.pbtxt").write_text(_STEP + _IMPATIENT)
    add_model(repository, "plain", times(2.0), config="max_batch_size: 4")
    return serve(repository)


def ask(address: str, path: str, method: str = "GET") -> str:
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, text
        return text
    finally:
        connection.close()


def get(server: ServerProcess, path: str) -> Any:
    return json.loads(ask(server.http, path))


def explained(server: ServerProcess, model: str) -> dict[str, Any]:
    found: dict[str, Any] = get(server, f"/v2/models/{model}/explain")["models"][0]
    return found


def ask_until(server: ServerProcess, model: str, stop: Event, client: int) -> int:
    """Asks with numbers of its own, one request at a time; returns how many were answered, each correctly."""
    answered = 0
    with http_client.InferenceServerClient(server.http, network_timeout=TIMEOUT_S) as connection:
        while not stop.is_set():
            rows = np.full((1 + answered % 3, 2), client * 1000 + answered % 500, np.float32)
            tensor = http_client.InferInput("X", list(rows.shape), "FP32")
            tensor.set_data_from_numpy(rows)
            answer = connection.infer(model, [tensor]).as_numpy("Y")
            assert np.array_equal(answer, np.full_like(rows, 0.5) if model == "step" else 2 * rows)
            answered += 1
    return answered


@contextmanager
def traffic(server: ServerProcess, model: str) -> Iterator[list[int]]:
    """Clients that ask all the time; what each was answered is there at the end."""
    stop, counts = Event(), list[int]()
    with ThreadPoolExecutor(_CLIENTS) as pool:
        asking = [pool.submit(ask_until, server, model, stop, client) for client in range(_CLIENTS)]
        try:
            yield counts
        finally:
            stop.set()
        counts += [one.result() for one in asking]


@pytest.mark.parametrize(("name", "instances"), [("tuned", 1), ("worker", 2), ("step", 1)])
def test_a_delay_that_breaks_the_objective_is_cut(server: ServerProcess, name: str, instances: int) -> None:
    begun = explained(server, name)["tuning"]
    setting = {"queue_delay_us": 40_000, "batch": 64, "instances": instances}
    assert begun == {
        "objective_p99_us": 40_000,
        "setting": setting,
        "bounds": setting,
        "changed": 0,
        "changes": [],
    }
    with traffic(server, name) as counts:
        until(lambda: has_decided(explained(server, name)["tuning"]))
        model = explained(server, name)
    first = model["tuning"]["changes"][-1]
    assert (first["why"], first["outcome"]) == ("long_waits", "kept")
    assert first["from"] == setting
    # Half, or less where executions leave less of the objective: they are longer on a busy machine.
    delay_us = first["to"]["queue_delay_us"]
    assert (first["to"], delay_us <= 20_000) == (setting | {"queue_delay_us": delay_us}, True)
    assert first["before"]["missed"] > first["after"]["missed"]
    assert model["queue"]["instances"] == instances, "a worker is always in service"
    statistics = get(server, f"/v2/models/{name}/stats")["model_stats"][0]["inference_stats"]
    assert (statistics["success"]["count"], statistics["fail"]["count"]) == (sum(counts), 0)


def has_decided(tuning: dict[str, Any]) -> bool:
    return bool(tuning["changes"] and tuning["changes"][-1]["outcome"] != "watched")


def test_the_metrics_show_what_is_set(server: ServerProcess) -> None:
    metrics = ask(server.metrics, "/metrics")
    row = 'model="tuned",version="1"'
    assert f"alipes_tuning_objective_seconds{{{row}}} 0.04\n" in metrics
    assert f"alipes_tuning_queue_delay_seconds{{{row}}} 0.04\n" in metrics
    assert f"alipes_tuning_batch_rows{{{row}}} 64\n" in metrics
    assert f"alipes_tuning_instances{{{row}}} 1\n" in metrics
    assert f"alipes_tuning_changes_total{{{row}}} 0\n" in metrics
    assert 'alipes_tuning_batch_rows{model="plain"' not in metrics
    assert "tuning" not in explained(server, "plain")


def test_a_wrong_parameter_keeps_the_model_from_loading(repository: Path, serve: Serve) -> None:
    add_model(repository, "wrong", times(2.0), config=_IMPATIENT.replace('"50"', '"5"'))
    add_model(repository, "right", times(2.0))
    server = serve(repository, "--exit-on-error=false")
    index = {entry["name"]: entry for entry in json.loads(ask(server.http, "/v2/repository/index", "POST"))}
    assert index["right"]["state"] == "READY"
    assert index["wrong"]["state"] == "UNAVAILABLE"
    assert (
        "'tuning.period_ms' of model 'wrong': expected an integer from 50 to 60000, got '5'" in index["wrong"]["reason"]
    )


def test_instances_that_are_added_serve_a_tuned_model(repository: Path, serve: Serve) -> None:
    both = _IMPATIENT.replace('parameters { key: "tuning.max_instances" value: { string_value: "1" } }', "")
    folder = add_model(repository, "tuned", times(2.0), config=both)
    server = serve(repository, "--model-control-mode=explicit", "--load-model=*")
    assert explained(server, "tuned")["queue"]["instances"] == 2
    (folder / "config.pbtxt").write_text(both.replace("count: 2", "count: 3"))
    ask(server.http, "/v2/repository/models/tuned/load", "POST")
    until(lambda: explained(server, "tuned")["tuning"]["bounds"]["instances"] == 3)
    until(lambda: explained(server, "tuned")["queue"]["instances"] == 3)
    assert explained(server, "tuned")["tuning"]["setting"]["instances"] == 3
