"""gRPC calls of real clients beyond the plain one: compressed both ways, bounded, and with a deadline."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.endpoints import GrpcEndpoint, tensors
from support.models import add_model
from support.notes import Notes
from support.processes import under_way
from support.python_models import add_python_model
from support.relay import Relay
from support.server import ServerProcess
from support.waiting import until
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

MANY_ROWS = "max_batch_size: 10000000"

# Half a megabyte that becomes small, and eight kilobytes that do.
LARGE = np.zeros((65_536, 2), np.float32)
SMALL = np.zeros((1024, 2), np.float32)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    """A server that compresses, and that takes compressed requests of at most a megabyte."""
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", config=MANY_ROWS)
    return serve_module(
        repository,
        "--grpc-infer-response-compression-level=high",
        "--grpc-max-expanded-bytes=1000000",
        "--grpc-max-request-bytes=1500000",
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    """A server without flags."""
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", config=MANY_ROWS)
    return serve_module(repository)


def infer(address: str, array: np.ndarray[Any, Any], algorithm: str | None = None) -> Any:
    with grpc_client.InferenceServerClient(address) as client:
        inputs = tensors(grpc_client, {"X": array})
        return client.infer("double", inputs, compression_algorithm=algorithm, client_timeout=60).as_numpy("Y")


def stream(address: str, arrays: list[np.ndarray[Any, Any]], algorithm: str | None = None) -> list[Any]:
    answers: Queue[Any] = Queue()
    with grpc_client.InferenceServerClient(address) as client:
        client.start_stream(lambda result, error: answers.put(error or result), compression_algorithm=algorithm)
        for array in arrays:
            client.async_stream_infer("double", tensors(grpc_client, {"X": array}))
        return [answers.get(timeout=60).as_numpy("Y") for _ in arrays]


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
@pytest.mark.parametrize("rows", [1, 60_000])
def test_compressed_requests_are_understood(plain: ServerProcess, algorithm: str, rows: int) -> None:
    array = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
    np.testing.assert_array_equal(infer(plain.grpc, array, algorithm), array * 2)
    for answer in stream(plain.grpc, [array, array[:1]], algorithm):
        np.testing.assert_array_equal(answer, array[: len(answer)] * 2)


def test_answers_are_compressed_where_the_flag_says_so(server: ServerProcess, plain: ServerProcess) -> None:
    with Relay(server.grpc) as relay:
        np.testing.assert_array_equal(infer(relay.address, LARGE), LARGE)
        assert relay.received < LARGE.nbytes / 10
        before = relay.received
        for answer in stream(relay.address, [SMALL] * 20):
            np.testing.assert_array_equal(answer, SMALL)
        assert relay.received - before < 20 * SMALL.nbytes / 4
    with Relay(plain.grpc) as relay:
        infer(relay.address, LARGE)
        assert relay.received > LARGE.nbytes


def test_compression_bombs_are_refused_and_calls_go_on(server: ServerProcess) -> None:
    at_the_bound = np.zeros((124_000, 2), np.float32)
    np.testing.assert_array_equal(infer(server.grpc, at_the_bound, "gzip"), at_the_bound)
    bomb = np.zeros((5_000_000, 2), np.float32)
    for algorithm in ("gzip", "deflate"):
        with pytest.raises(InferenceServerException, match="expands to more than the limit of 1000000 bytes") as error:
            infer(server.grpc, bomb, algorithm)
        assert error.value.status() == "StatusCode.INVALID_ARGUMENT"
    np.testing.assert_array_equal(infer(server.grpc, SMALL), SMALL)


def test_a_request_beyond_the_limit_is_refused(server: ServerProcess) -> None:
    with pytest.raises(InferenceServerException, match="exceeds the limit of 1500000 bytes"):
        infer(server.grpc, np.zeros((200_000, 2), np.float32))
    below = np.zeros((187_000, 2), np.float32)
    np.testing.assert_array_equal(infer(server.grpc, below), below)


def test_a_control_message_beyond_its_own_limit_is_refused(plain: ServerProcess) -> None:
    with grpc.insecure_channel(plain.grpc) as channel:
        endpoint = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        answers = {
            1 << 16: (grpc.StatusCode.NOT_FOUND, "Request for unknown model: 'xxx"),
            (1 << 16) + 1: (
                grpc.StatusCode.INVALID_ARGUMENT,
                "request message of 65537 bytes exceeds the limit of 65536 bytes",
            ),
        }
        for length, (code, text) in answers.items():
            request = service_pb2.ModelMetadataRequest(name="x" * (length - 4))  # four more say what it is and how long
            with pytest.raises(grpc.RpcError) as error:
                endpoint.ModelMetadata(request, timeout=60)
            assert (error.value.code(), error.value.details()[: len(text)]) == (code, text)
        assert endpoint.ServerLive(service_pb2.ServerLiveRequest(), timeout=60).live


def test_a_request_whose_deadline_passes_never_reaches_its_model(
    repository: Path, serve: Serve, tmp_path: Path
) -> None:
    notes = Notes(tmp_path / "notes")
    waits = """
    class TritonPythonModel:
        def execute(self, requests):
            note("executing")
            await_note("go on")
            return [answer(Y=given(request)) for request in requests]
    """
    add_python_model(repository, "waits", waits)
    server = serve(repository, environment=notes.environment)
    request = service_pb2.ModelInferRequest(model_name="waits")
    (inputs,) = tensors(grpc_client, {"X": [1]})
    request.inputs.append(inputs._get_tensor())
    request.raw_input_contents.append(inputs._get_content())
    with GrpcEndpoint(server) as endpoint, ThreadPoolExecutor(1) as pool, grpc.insecure_channel(server.grpc) as channel:
        first = pool.submit(endpoint.ask, "waits", {"X": [1]})
        notes.read("executing")
        ask = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=service_pb2.ModelInferRequest.SerializeToString,
        )
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        # One that a busy machine has no time to send before its deadline is none that the server could count.
        while failed(endpoint, "waits") < 3:
            with pytest.raises(grpc.RpcError) as error:
                ask(request, timeout=0.2)
            assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            # Behind it on the same connection: once this is answered, the server has read all that there was of it.
            assert stub.ServerLive(service_pb2.ServerLiveRequest(), timeout=60).live
            until(lambda: under_way(server, "waits") == 1)
        notes.write("go on")
        assert list(first.result(60)["Y"]) == [1]
        statistics = endpoint.statistics("waits")
        assert statistics["inference_stats"]["success"]["count"] == 1
        assert statistics["inference_stats"]["fail"]["count"] == 3
        assert statistics["execution_count"] == 1


def failed(endpoint: GrpcEndpoint, model: str) -> int:
    """Requests to a model that failed."""
    return int(endpoint.statistics(model)["inference_stats"]["fail"].get("count", 0))
