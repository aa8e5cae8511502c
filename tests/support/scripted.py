"""A gRPC server whose every answer a test decides: it can misbehave, for example answer out of order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any, Self

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

Script = Callable[[Iterator[Any]], Iterator[Any]]
"""Maps the requests of a stream to responses, or raises to break the stream."""


class ScriptedServer(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """One model with one FP32 input and output of one number, `plain` or with a `state`. A context manager."""

    def __init__(self, script: Script, *, stateful: bool = False, decoupled: bool = False, port: int = 0) -> None:
        """Starts at once."""
        self._script = script
        self._stateful = stateful
        self._decoupled = decoupled
        self.requests: list[Any] = []
        self.streams = 0
        self._lock = threading.Lock()
        self._server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    @property
    def address(self) -> str:
        """Where it listens, `host:port`."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()

    def ServerLive(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerLiveResponse(live=True)

    def ServerReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerReadyResponse(ready=True)

    def ModelReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ModelReadyResponse(ready=True)

    def ModelMetadata(self, request: Any, context: Any) -> Any:
        tensor = service_pb2.ModelMetadataResponse.TensorMetadata
        return service_pb2.ModelMetadataResponse(
            name=request.name,
            versions=["1"],
            inputs=[tensor(name="x", datatype="FP32", shape=[-1, 1])],
            outputs=[tensor(name="y", datatype="FP32", shape=[-1, 1])],
        )

    def ModelConfig(self, request: Any, context: Any) -> Any:
        answer = service_pb2.ModelConfigResponse()
        answer.config.name = request.name
        answer.config.input.add(name="x", data_type=11, dims=[-1, 1])
        answer.config.output.add(name="y", data_type=11, dims=[-1, 1])
        answer.config.model_transaction_policy.decoupled = self._decoupled
        if self._stateful:
            answer.config.sequence_batching.max_sequence_idle_microseconds = 1
        return answer

    def ModelStreamInfer(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        with self._lock:
            self.streams += 1
        try:
            yield from self._script(self._noted(requests))
        except BrokenPipeError:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the server goes down")

    def _noted(self, requests: Iterator[Any]) -> Iterator[Any]:
        for request in requests:
            self.requests.append(request)
            yield request


def twice(request: Any, request_id: str | None = None, *, last: bool | None = None) -> Any:
    """The answer `2 x`, which says whether it is the last one, or does not."""
    x = np.frombuffer(request.raw_input_contents[0], np.float32)
    answer = service_pb2.ModelStreamInferResponse()
    response = answer.infer_response
    response.model_name, response.model_version = request.model_name, "1"
    response.id = request.id if request_id is None else request_id
    response.outputs.add(name="y", datatype="FP32", shape=[1, 1])
    response.raw_output_contents.append((2 * x).tobytes())
    if last is not None:
        response.parameters["triton_final_response"].bool_param = last
    return answer


def refused(request: Any, text: str, *, named: bool = True) -> Any:
    """An error for a request, which the server names or does not."""
    answer = service_pb2.ModelStreamInferResponse(error_message=text)
    if named:
        answer.infer_response.id = request.id
    return answer


def each(requests: Iterator[Any]) -> Iterator[Any]:
    """A script: every request is answered at once."""
    return map(twice, requests)
