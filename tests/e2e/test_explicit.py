"""Explicit mode: load, unload and reload through the clients, also under load."""

from __future__ import annotations

import http.client
import json
import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support.models import add_model, times
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]
PATIENCE_S = 60
RELOADS = 8
CALLERS = 4


@pytest.fixture
def server(repository: Path, serve: Serve) -> ServerProcess:
    add_model(repository, "scaled")
    return serve(repository, "--model-control-mode=explicit")


def touch(folder: Path) -> None:
    later = folder.stat().st_mtime_ns + 10**9
    os.utime(folder, ns=(later, later))


def test_nothing_is_loaded_until_it_is_asked_for(server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        assert client.is_server_ready()
        assert client.get_model_repository_index() == [{"name": "scaled"}]
        assert not client.is_model_ready("scaled")
        client.load_model("scaled")
        assert client.is_model_ready("scaled")
        client.unload_model("scaled")
        assert not client.is_model_ready("scaled")
        with pytest.raises(InferenceServerException, match="'scaled' has no available versions"):
            client.get_model_metadata("scaled")
        index = [{"name": "scaled", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}]
        assert client.get_model_repository_index() == index


def test_grpc_loads_and_unloads_too(server: ServerProcess) -> None:
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.load_model("scaled")
        assert client.is_model_ready("scaled")
        client.unload_model("scaled")
        assert not client.is_model_ready("scaled")


def test_a_configuration_in_the_request_takes_effect(repository: Path, server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("scaled", config=json.dumps({"backend": "onnxruntime", "max_batch_size": 3}))
        assert client.get_model_config("scaled")["max_batch_size"] == 3
        touch(repository / "scaled")
        client.load_model("scaled")
        assert client.get_model_config("scaled")["max_batch_size"] == 4


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("absent", "failed to load 'absent', failed to poll from model repository"),
        ("broken", "load failed for model 'broken': version 1 is at UNAVAILABLE state: "),
    ],
)
def test_a_failed_load_says_why(repository: Path, server: ServerProcess, model: str, text: str) -> None:
    (add_model(repository, "broken") / "1" / "model.onnx").write_bytes(b"not a model")
    with http_client.InferenceServerClient(server.http) as client, pytest.raises(InferenceServerException) as failure:
        client.load_model(model)
    assert text in str(failure.value)


def test_a_failed_reload_leaves_the_old_version_serving(repository: Path, server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("scaled")
        (repository / "scaled" / "1" / "model.onnx").write_bytes(b"not a model")
        touch(repository / "scaled")
        with pytest.raises(InferenceServerException):
            client.load_model("scaled")
        assert client.is_model_ready("scaled")
        assert client.is_server_ready()
    with closing(http.client.HTTPConnection(server.http, timeout=PATIENCE_S)) as connection:
        assert answer_of(connection) == 2.0


def test_model_control_is_refused_in_the_default_mode(repository: Path, serve: Serve) -> None:
    add_model(repository, "scaled")
    server = serve(repository)
    with http_client.InferenceServerClient(server.http) as client:
        for call in (client.load_model, client.unload_model):
            with pytest.raises(InferenceServerException, match="not allowed if polling is enabled"):
                call("scaled")


def answer_of(connection: http.client.HTTPConnection) -> float:
    request = {"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 1]}]}
    connection.request("POST", "/v2/models/scaled/infer", json.dumps(request))
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body
    return float(json.loads(body)["outputs"][0]["data"][0])


def test_no_request_is_lost_while_the_model_is_reloaded(repository: Path, server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("scaled")
        finished = threading.Event()
        answers: list[list[float]] = [[] for _ in range(CALLERS)]

        def ask(mine: list[float]) -> None:
            with closing(http.client.HTTPConnection(server.http, timeout=PATIENCE_S)) as connection:
                while not finished.is_set():
                    mine.append(answer_of(connection))
                mine.append(answer_of(connection))

        failures: list[BaseException] = []

        def watched(mine: list[float]) -> None:
            try:
                ask(mine)
            except BaseException as error:
                failures.append(error)

        callers = [threading.Thread(target=watched, args=(mine,)) for mine in answers]
        for caller in callers:
            caller.start()
        try:
            for round_number in range(1, RELOADS + 1):
                model = times(2.0 + round_number)
                (repository / "scaled" / "1" / "model.onnx").write_bytes(model.SerializeToString())
                touch(repository / "scaled")
                client.load_model("scaled", config=None)
        finally:
            finished.set()
            for caller in callers:
                caller.join(PATIENCE_S)
    assert failures == []
    for mine in answers:
        assert mine == sorted(mine), "an answer of an older model came after one of a newer"
        assert mine[-1] == 2.0 + RELOADS
