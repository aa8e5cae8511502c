"""The four flavours of tritonclient, unmodified: everything beyond the plain call that they know of."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from queue import Queue
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.grpc.aio as grpc_aio_client
import tritonclient.http as http_client
import tritonclient.http.aio as http_aio_client
from support.endpoints import tensors
from support.models import add_model
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

ROWS = np.array([[1, 2], [3, 4]], np.float32)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    add_python_model(repository, "tells", REPORTS, config=DECOUPLED)
    return serve_module(repository, "--model-control-mode=explicit", "--load-model=*")


def asks_everything(client: Any) -> list[Any]:
    """Calls, or their coroutines, whose answers every client of either protocol gives."""
    return [
        client.is_server_live(),
        client.is_server_ready(),
        client.is_model_ready("double"),
        client.get_server_metadata(),
        client.get_model_metadata("double"),
        client.get_model_config("double"),
        client.get_model_repository_index(),
        client.get_inference_statistics("double"),
        client.load_model("double"),
    ]


def test_http_asks_everything_and_compresses_both_ways(server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http) as client:
        assert asks_everything(client)[:3] == [True, True, True]
        for algorithm in ("gzip", "deflate"):
            result = client.infer(
                "double",
                tensors(http_client, {"X": ROWS}),
                request_compression_algorithm=algorithm,
                response_compression_algorithm=algorithm,
            )
            np.testing.assert_array_equal(result.as_numpy("Y"), ROWS * 2)
        with pytest.raises(InferenceServerException, match="unknown model: 'nobody' is not found"):
            client.infer("nobody", tensors(http_client, {"X": ROWS}))


def test_http_asks_in_the_background(server: ServerProcess) -> None:
    with http_client.InferenceServerClient(server.http, concurrency=4) as client:
        pending = [client.async_infer("double", tensors(http_client, {"X": ROWS * factor})) for factor in range(20)]
        for factor, answer in enumerate(pending):
            np.testing.assert_array_equal(answer.get_result().as_numpy("Y"), ROWS * factor * 2)


def test_asyncio_http_asks_everything_and_compresses_both_ways(server: ServerProcess) -> None:
    async def ask() -> None:
        async with http_aio_client.InferenceServerClient(server.http) as client:
            assert (await asyncio.gather(*asks_everything(client)))[:3] == [True, True, True]
            result = await client.infer(
                "double",
                tensors(http_aio_client, {"X": ROWS}),
                request_compression_algorithm="gzip",
                response_compression_algorithm="gzip",
            )
            np.testing.assert_array_equal(result.as_numpy("Y"), ROWS * 2)

    asyncio.run(ask())


def test_grpc_calls_succeed_and_errors_are_raised(server: ServerProcess) -> None:
    with grpc_client.InferenceServerClient(server.grpc) as client:
        assert asks_everything(client)[:3] == [True, True, True]
        with pytest.raises(InferenceServerException, match="unknown model: 'nobody' is not found") as error:
            client.infer("nobody", tensors(grpc_client, {"X": ROWS}))
        assert error.value.status() == "StatusCode.NOT_FOUND"


def test_grpc_asks_in_the_background_and_withdraws(server: ServerProcess) -> None:
    answers: Queue[Any] = Queue()
    with grpc_client.InferenceServerClient(server.grpc) as client:
        inputs = tensors(grpc_client, {"X": ROWS})
        for _ in range(20):
            client.async_infer("double", inputs, callback=lambda result, error: answers.put(error or result))
        for _ in range(20):
            np.testing.assert_array_equal(answers.get(timeout=60).as_numpy("Y"), ROWS * 2)
        call = client.async_infer("double", inputs, callback=lambda result, error: answers.put(error or result))
        call.cancel()
        assert answers.get(timeout=60) is not None  # an answer that was quicker, or that it was cancelled
        assert client.is_server_ready()


def test_grpc_streams_many_responses(server: ServerProcess) -> None:
    answers: Queue[Any] = Queue()
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put(error or result))
        client.async_stream_infer("tells", tensors(grpc_client, {"X": [5, 6, 7]}), enable_empty_final_response=True)
        results = [answers.get(timeout=60) for _ in range(4)]
        assert [int(result.as_numpy("Y")[0]) for result in results[:3]] == [5, 6, 7]
        assert results[3].get_response().parameters["triton_final_response"].bool_param
        client.stop_stream()


def test_asyncio_grpc_asks_everything_and_streams(server: ServerProcess) -> None:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        for first in (1, 10):
            yield {"model_name": "tells", "inputs": tensors(grpc_aio_client, {"X": [first, first + 1]})}

    async def ask() -> list[int]:
        async with grpc_aio_client.InferenceServerClient(server.grpc) as client:
            assert (await asyncio.gather(*asks_everything(client)))[:3] == [True, True, True]
            found = []
            async for result, error in client.stream_infer(requests()):
                assert error is None
                found.append(int(result.as_numpy("Y")[0]))
            return found

    assert sorted(asyncio.run(ask())) == [1, 2, 10, 11]


def test_many_clients_at_once_get_their_own_answers(server: ServerProcess) -> None:
    wrong: Queue[BaseException] = Queue()

    def ask(factor: int) -> None:
        try:
            with grpc_client.InferenceServerClient(server.grpc) as client:
                for _ in range(20):
                    result = client.infer("double", tensors(grpc_client, {"X": ROWS * factor}))
                    np.testing.assert_array_equal(result.as_numpy("Y"), ROWS * factor * 2)
        except BaseException as error:
            wrong.put(error)

    clients = [threading.Thread(target=ask, args=(factor,)) for factor in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert wrong.empty(), wrong.get()
