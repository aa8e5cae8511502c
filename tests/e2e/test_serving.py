"""A real server and the real clients: start, ready, infer."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.grpc.aio as grpc_aio_client
import tritonclient.http as http_client
import tritonclient.http.aio as http_aio_client
from support.models import add_model, times
from support.server import ServerProcess

ROWS = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    add_model(repository, "triple", times(3.0), versions=(1, 2), config="version_policy { all { } }")
    return serve_module(repository)


def inputs_of(module: object) -> list[object]:
    tensor = module.InferInput("X", list(ROWS.shape), "FP32")  # type: ignore[attr-defined]
    tensor.set_data_from_numpy(ROWS)
    return [tensor]


def test_http_client_gets_the_answer(server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("double")
        result = client.infer("double", inputs_of(http_client))
        np.testing.assert_array_equal(result.as_numpy("Y"), ROWS * 2)


def test_grpc_client_gets_the_answer(server: ServerProcess) -> None:
    with grpc_client.InferenceServerClient(server.grpc) as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("triple", "2")
        result = client.infer("triple", inputs_of(grpc_client), model_version="1")
        np.testing.assert_array_equal(result.as_numpy("Y"), ROWS * 3)
        assert result.get_response().model_version == "1"


def test_asyncio_http_client_gets_every_answer(server: ServerProcess) -> None:
    async def ask() -> list[np.ndarray]:
        async with http_aio_client.InferenceServerClient(server.http) as client:
            calls = [client.infer("double", inputs_of(http_client)) for _ in range(20)]
            return [result.as_numpy("Y") for result in await asyncio.gather(*calls)]

    for answer in asyncio.run(ask()):
        np.testing.assert_array_equal(answer, ROWS * 2)


def test_asyncio_grpc_client_gets_every_answer(server: ServerProcess) -> None:
    async def ask() -> list[np.ndarray]:
        async with grpc_aio_client.InferenceServerClient(server.grpc) as client:
            calls = [client.infer("triple", inputs_of(grpc_client)) for _ in range(20)]
            return [result.as_numpy("Y") for result in await asyncio.gather(*calls)]

    for answer in asyncio.run(ask()):
        np.testing.assert_array_equal(answer, ROWS * 3)


def test_the_index_lists_every_version(server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        index = {(entry["name"], entry["version"], entry["state"]) for entry in client.get_model_repository_index()}
    assert index == {("double", "1", "READY"), ("triple", "1", "READY"), ("triple", "2", "READY")}


def test_metrics_count_what_was_answered(server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        client.infer("double", inputs_of(http_client))
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    (line,) = [line for line in text.splitlines() if line.startswith('nv_inference_request_success{model="double"')]
    assert float(line.rsplit(" ", 1)[1]) >= 1


def test_the_log_has_the_lines_that_scripts_read(server: ServerProcess) -> None:
    for pattern in (
        rf'"Started HTTPService at {server.http}"',
        rf'"Started GRPCInferenceService at {server.grpc}"',
        rf'"Started Metrics Service at {server.metrics}"',
        r'"successfully loaded \'double\'"',
        r"\| triple +\| 2 +\| READY +\|",
    ):
        server.wait_for_output(pattern)


def test_the_server_runs_the_library_and_never_imports_the_package(server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        client.infer("double", inputs_of(http_client))
    mapped = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "libonnxruntime.so" in mapped
    assert "onnxruntime_pybind11_state" not in mapped


def test_the_server_starts_no_process_of_its_own(server: ServerProcess) -> None:
    assert psutil.Process(server.process.pid).children(recursive=True) == []


@pytest.fixture
def only_http(repository: Path, serve: Callable[..., ServerProcess]) -> Iterator[ServerProcess]:
    yield serve(repository, "--allow-grpc=false", "--allow-metrics=false")


def test_an_endpoint_that_is_not_allowed_is_not_opened(only_http: ServerProcess) -> None:
    sockets = psutil.Process(only_http.process.pid).net_connections(kind="inet")
    listening = [f"{s.laddr.ip}:{s.laddr.port}" for s in sockets if s.status == psutil.CONN_LISTEN]
    assert listening == [only_http.http]


def test_each_endpoint_has_its_own_address(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(repository, "--http-address=127.0.0.2", "--grpc-address=127.0.0.3", "--metrics-address=127.0.0.4")
    assert [address.split(":")[0] for address in (server.http, server.grpc, server.metrics)] == [
        "127.0.0.2",
        "127.0.0.3",
        "127.0.0.4",
    ]
    with urllib.request.urlopen(f"http://{server.http}/v2", timeout=60) as answer:
        assert json.load(answer)["name"] == "triton"


def test_the_environment_stands_for_flags(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(repository, environment={"ALIPES_ID": "from-environment"})
    with urllib.request.urlopen(f"http://{server.http}/v2", timeout=60) as answer:
        assert json.load(answer)["name"] == "from-environment"


def test_a_repository_with_a_space_in_its_path_is_served(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(tmp_path / "my models", "double")
    server = serve(tmp_path / "my models")
    with http_client.InferenceServerClient(server.http) as client:
        assert client.is_model_ready("double")


def test_the_log_goes_to_a_file(tmp_path: Path, repository: Path) -> None:
    file = tmp_path / "log"
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "alipes", "serve", str(repository), "--http-port=0", "--grpc-port=0"]
    command += ["--metrics-port=0", "--http-address=127.0.0.1", f"--log-file={file}", "--exit-on-error=true"]
    add_model(repository, "bad", config="{")
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    assert "Poll failed for model directory 'bad'" in file.read_text()
    assert run.stderr == "error: creating server: Internal - failed to load all models\n"
