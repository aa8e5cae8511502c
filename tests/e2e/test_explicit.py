"""Explicit mode: load, unload and reload through the clients, also under load."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support.models import add_model, times
from support.server import ServerProcess
from support.traffic import Traffic, answer_of
from support.waiting import until
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]
RELOADS = 8

# Imports a file of its folder with its first request.
_IMPORTS_LATE = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        from late import FACTOR
        xs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * FACTOR)]) for x in xs]
"""
_LATE_CONFIG = {
    "backend": "python",
    "max_batch_size": 4,
    "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [2]}],
    "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [2]}],
}


@pytest.fixture
def server(repository: Path, serve: Serve) -> ServerProcess:
    add_model(repository, "scaled")
    return serve(repository, "--model-control-mode=explicit")


def touch(folder: Path) -> None:
    later = folder.stat().st_mtime_ns + 10**9
    os.utime(folder, ns=(later, later))


def test_nothing_is_loaded_before_a_load_request(server: ServerProcess) -> None:
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
        until(lambda: client.get_model_repository_index() == index)  # once the last request has let go of it


def test_grpc_loads_and_unloads_too(server: ServerProcess) -> None:
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.load_model("scaled")
        assert client.is_model_ready("scaled")
        client.unload_model("scaled")
        with pytest.raises(InferenceServerException, match="'scaled' has no available versions"):
            client.is_model_ready("scaled")


def test_a_configuration_in_the_request_takes_effect(repository: Path, server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("scaled", config=json.dumps({"backend": "onnxruntime", "max_batch_size": 3}))
        assert client.get_model_config("scaled")["max_batch_size"] == 3
        touch(repository / "scaled")
        client.load_model("scaled")
        assert client.get_model_config("scaled")["max_batch_size"] == 4


def test_models_load_from_the_repositories_that_are_there(repository: Path, tmp_path: Path, serve: Serve) -> None:
    add_model(repository, "scaled")
    late = tmp_path / "late"
    server = serve(repository, f"--model-repository={late}", "--model-control-mode=explicit")
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("scaled")
        with pytest.raises(InferenceServerException, match="failed to load 'second', failed to poll from"):
            client.load_model("second")
        server.wait_for_output(f"failed to poll model 'second': model not found .* '{late}' cannot be read")
        add_model(late, "second", times(3.0))
        client.load_model("second")
        assert answer_of(server, "second") == 3.0
        until(lambda: [entry["name"] for entry in client.get_model_repository_index()] == ["scaled", "second"])


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


def test_a_name_that_leads_elsewhere_is_neither_loaded_nor_unloaded(server: ServerProcess) -> None:
    with grpc_client.InferenceServerClient(server.grpc) as client:
        for name, ask in itertools.product(("..", "a..b", "a/b", "a\\b", ""), (client.load_model, client.unload_model)):
            with pytest.raises(InferenceServerException, match="model name must not ") as refused:
                ask(name)
            assert refused.value.status() == "StatusCode.INVALID_ARGUMENT"
            assert refused.value.message().startswith(f"invalid model name '{name}', ")


def test_a_failed_reload_leaves_the_old_version_serving(repository: Path, server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("scaled")
        (repository / "scaled" / "1" / "model.onnx").write_bytes(b"not a model")
        touch(repository / "scaled")
        with pytest.raises(InferenceServerException):
            client.load_model("scaled")
        assert client.is_model_ready("scaled")
        assert client.is_server_ready()
    assert answer_of(server, "scaled") == 2.0


def test_model_control_is_refused_in_the_default_mode(repository: Path, serve: Serve) -> None:
    add_model(repository, "scaled")
    server = serve(repository)
    with http_client.InferenceServerClient(server.http) as client:
        for call in (client.load_model, client.unload_model):
            with pytest.raises(InferenceServerException, match="not allowed if polling is enabled"):
                call("scaled")


@pytest.mark.parametrize("library", [http_client, grpc_client], ids=["http", "grpc"])
def test_files_in_the_request_make_a_model(server: ServerProcess, library: Any) -> None:
    address = server.http if library is http_client else server.grpc
    config = json.dumps({"backend": "onnxruntime"})
    with library.InferenceServerClient(address) as client:
        client.load_model("conjured", config=config, files={"file:3/model.onnx": times(9.0).SerializeToString()})
        assert answer_of(server, "conjured") == 9.0
        assert client.is_model_ready("conjured", "3")
        client.load_model("conjured", config=config, files={"file:1/model.onnx": times(8.0).SerializeToString()})
        assert answer_of(server, "conjured") == 8.0
        client.unload_model("conjured")
        until(lambda: "'conjured' is not found" in refusal(client, "conjured"))


def refusal(client: Any, model: str) -> str:
    with pytest.raises(InferenceServerException) as failure:
        client.get_model_metadata(model)
    return str(failure.value.message())


def test_a_file_may_be_named_with_a_slash_in_front(server: ServerProcess) -> None:
    files = {"file:/1/model.onnx": times(7.0).SerializeToString(), "file:/etc/more": b"lies in the folder too"}
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("scaled", config=json.dumps({"backend": "onnxruntime"}), files=files)
        assert answer_of(server, "scaled") == 7.0
        client.unload_model("scaled")


def test_files_of_a_python_model_stay_as_long_as_its_processes(server: ServerProcess) -> None:
    files = {"file:1/model.py": _IMPORTS_LATE.encode(), "file:1/late.py": b"FACTOR = 6.0\n"}
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("late", config=json.dumps(_LATE_CONFIG), files=files)
        assert answer_of(server, "late") == 6.0
        client.unload_model("late")


@pytest.mark.parametrize("path", ["../scaled/1/model.onnx", "/../evil", "1/../../../evil"])
def test_no_file_of_a_request_leads_out_of_its_folder(repository: Path, server: ServerProcess, path: str) -> None:
    before = sorted(repository.rglob("*"))
    with http_client.InferenceServerClient(server.http) as client, pytest.raises(InferenceServerException) as failure:
        client.load_model("scaled", config="{}", files={f"file:{path}": b"evil"})
    assert failure.value.message() == "failed to load 'scaled', failed to poll from model repository"
    assert sorted(repository.rglob("*")) == before


def test_no_request_is_lost_while_the_model_is_reloaded(repository: Path, server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("scaled")
        with Traffic(server, "scaled") as traffic:
            for round_number in range(1, RELOADS + 1):
                file = repository / "scaled" / "1" / "model.onnx"
                file.write_bytes(times(2.0 + round_number).SerializeToString())
                # As large as the one before; if it were as old too, nothing would have changed.
                later = file.stat().st_mtime_ns + round_number * 10**9
                os.utime(file, ns=(later, later))
                client.load_model("scaled")
    assert traffic.failures == []
    for mine in traffic.by_caller:
        assert mine == sorted(mine), "an answer of an older model came after one of a newer"
        assert mine[-1] == 2.0 + RELOADS


def test_a_version_that_was_unloaded_is_not_at_ready_state(server: ServerProcess) -> None:
    text = "Request for unknown model: 'scaled' version 1 is not at ready state"
    load = "'scaled' was unloaded: POST /v2/repository/models/scaled/load loads it"
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("scaled")
        client.unload_model("scaled")
        for ask in (client.get_model_metadata, client.get_model_config):
            with pytest.raises(InferenceServerException) as failure:
                ask("scaled", "1")
            assert (failure.value.status(), failure.value.message()) == ("503", f"{text}; {load}")
        assert not client.is_model_ready("scaled", "1")
        with pytest.raises(InferenceServerException, match="'scaled' version 2 is not found") as failure:
            client.get_model_metadata("scaled", "2")
        assert failure.value.status() == "404"
    with grpc_client.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException) as failure:
            client.get_model_metadata("scaled", "1")
        assert (failure.value.status(), failure.value.message()) == ("StatusCode.UNAVAILABLE", f"{text}; {load}")
        with pytest.raises(InferenceServerException, match="is not at ready state"):
            client.is_model_ready("scaled", "1")
