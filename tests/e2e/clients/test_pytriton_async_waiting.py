"""PyTriton's waits for a server and a model, with asynchronous clients of tritonclient and with our own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import tritonclient.grpc
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http
import tritonclient.http.aio as http_aio
from alipes import AsyncClient
from alipes.compat.pytriton.client.async_waiting import (
    asyncio_get_model_config,
    asyncio_get_model_state,
    asyncio_wait_for_model_ready,
    asyncio_wait_for_model_status_loaded,
    asyncio_wait_for_server_ready,
)
from alipes.compat.pytriton.client.exceptions import PyTritonClientTimeoutError
from alipes.compat.pytriton.client.states import ModelState, get_model_state
from alipes.compat.pytriton.client.waiting import (
    create_client_from_url,
    get_model_config,
    wait_for_model_ready,
    wait_for_server_ready,
)
from support.ports import free_ports
from support.pytriton_models import write_models
from support.server import ServerProcess

CLIENTS: dict[str, tuple[str, Callable[[str], AbstractAsyncContextManager[Any]]]] = {
    "tritonclient over HTTP": ("http", http_aio.InferenceServerClient),
    "tritonclient over gRPC": ("grpc", grpc_aio.InferenceServerClient),
    "ours over HTTP": ("http", AsyncClient),
    "ours over gRPC": ("grpc", lambda address: AsyncClient(f"grpc://{address}")),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    write_models(repository, "queued", "said")
    return serve_module(repository, "--model-control-mode=explicit", "--load-model=queued")


@pytest.mark.parametrize("name", CLIENTS)
def test_a_server_and_a_model_are_waited_for_and_described(server: ServerProcess, name: str) -> None:
    protocol, make = CLIENTS[name]

    async def run() -> None:
        async with make(getattr(server, protocol)) as client:
            await asyncio_wait_for_server_ready(client, 0.01)
            await asyncio_wait_for_model_status_loaded(client, "queued", 0.01)
            await asyncio_wait_for_model_ready(client, "queued", "1", timeout_s=30)
            states = [await asyncio_get_model_state(client, *one) for one in (("queued",), ("queued", "1"))]
            assert states == [ModelState.READY] * 2
            for absent in (("queued", "7"), ("said",), ("nothing",)):
                assert await asyncio_get_model_state(client, *absent) is ModelState.UNAVAILABLE
            config = await asyncio_get_model_config(client, "queued", timeout_s=30)
            assert (config.model_name, config.max_batch_size, config.decoupled) == ("queued", 8, False)
            assert config.batcher is not None
            assert config.batcher.max_queue_delay_microseconds == 100
            with pytest.raises(PyTritonClientTimeoutError, match=r"^Timeout while waiting for model said to be ready"):
                await asyncio_wait_for_model_ready(client, "said", timeout_s=0.1)
            with pytest.raises(PyTritonClientTimeoutError):
                await asyncio_get_model_config(client, "said", timeout_s=0.1)

    asyncio.run(run())


@pytest.mark.parametrize("name", CLIENTS)
def test_a_server_that_is_not_there_is_a_time_out(name: str) -> None:
    async def run() -> None:
        async with CLIENTS[name][1](f"127.0.0.1:{free_ports(1)[0]}") as client:
            with pytest.raises(PyTritonClientTimeoutError, match=r"model m to be ready \(timeout=0.30\)$"):
                await asyncio_wait_for_model_ready(client, "m", timeout_s=0.3)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio_wait_for_server_ready(client, 0.01), 0.1)

    asyncio.run(run())


def test_clients_that_wait_are_those_of_tritonclient_too(server: ServerProcess) -> None:
    clients: list[Any] = [
        create_client_from_url(f"http://{server.http}"),
        create_client_from_url(f"grpc://{server.grpc}"),
        tritonclient.http.InferenceServerClient(server.http),
        tritonclient.grpc.InferenceServerClient(server.grpc),
    ]
    for client in clients:
        wait_for_server_ready(client, 30)
        wait_for_model_ready(client, "queued", timeout_s=30)
        assert get_model_config(client, "queued", "1", 30).max_batch_size == 8
        with pytest.raises(PyTritonClientTimeoutError, match=r"^Waiting for model said/<latest> to be ready timed out"):
            wait_for_model_ready(client, "said", timeout_s=0.1)
        assert get_model_state(client, "queued") is ModelState.READY
        assert get_model_state(client, "said") is ModelState.UNAVAILABLE
        client.close()
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    for client in (tritonclient.http.InferenceServerClient(nowhere), tritonclient.grpc.InferenceServerClient(nowhere)):
        with pytest.raises(PyTritonClientTimeoutError, match=r"^Waiting for server to be ready timed out\.$"):
            wait_for_server_ready(client, 0.1)
