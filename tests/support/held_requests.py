"""Requests that a test holds in execution, and lets others wait behind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import grpc
import pytest
import tritonclient.grpc as grpc_client
from tritonclient.grpc import service_pb2, service_pb2_grpc

from support.endpoints import ENDPOINTS, Refusal, Reply, Request, tensors
from support.notes import Notes
from support.processes import under_way
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

# A negative X raises; 7 waits until the test lets it go on.
OBEYS = """
class TritonPythonModel:
    def execute(self, requests):
        x = given(requests[0]).flat[0]
        if x < 0:
            raise ValueError("negative")
        if x == 7:
            note("holding", os.getpid())
            await_note("go on")
        return [answer(Y=given(request)) for request in requests]
"""

# Inputs of a model without and with batches: one that it holds, and one that it answers at once.
HOLD, X = {"X": [7]}, {"X": [1]}
HOLD_ROW, ROW = {"X": [[7]]}, {"X": [[1]]}


class HeldRequests:
    """Asks models of `OBEYS`, from other threads where they are held."""

    def __init__(self, server: ServerProcess, notes: Notes) -> None:
        """Needs the notes that the server's models leave."""
        self.server = server
        self.notes = notes
        self._pool = ThreadPoolExecutor(16)
        self._channel = grpc.insecure_channel(server.grpc)

    def ask(
        self,
        model: str,
        inputs: Mapping[str, Any],
        *,
        outputs: Sequence[str] | None = None,
        kind: str = "http",
        **terms: Any,
    ) -> Reply:
        """The answer over an endpoint; terms are `timeout_us` and `priority`.

        Raises:
            Refusal: If the server answers with an error.
        """
        with ENDPOINTS[kind](self.server) as endpoint:
            return endpoint.infer(Request(model, inputs, "", None, outputs, "", **terms))

    def fail(self, model: str, inputs: Mapping[str, Any], text: str, **more: Any) -> None:
        """A request that fails with a text."""
        with pytest.raises(Refusal, match=text):
            self.ask(model, inputs, **more)

    def hold(self, model: str, inputs: Mapping[str, Any] = HOLD) -> Future[Reply]:
        """A request that executes until `go_on`."""
        future = self._pool.submit(self.ask, model, inputs)
        until(lambda: future.done() or "holding" in self.notes.names())
        if future.done():
            future.result()  # or why it is not held
        return future

    def wait_behind(self, model: str, inputs: Mapping[str, Any], **more: Any) -> Future[Reply]:
        """A request that waits behind the one that is held."""
        before = under_way(self.server, model)
        future = self._pool.submit(self.ask, model, inputs, **more)
        until(lambda: under_way(self.server, model) > before)
        return future

    def go_on(self, *held: Future[Reply]) -> None:
        """Lets the model answer, and waits for answers."""
        self.notes.write("go on")
        for one in held:
            one.result(TIMEOUT_S)

    def call(self, model: str, inputs: Mapping[str, Any], timeout_s: float = TIMEOUT_S) -> grpc.Future:
        """A gRPC call that can be cancelled, with a deadline."""
        message = service_pb2.ModelInferRequest(model_name=model)
        for tensor in tensors(grpc_client, inputs):
            message.inputs.append(tensor._get_tensor())
            message.raw_input_contents.append(tensor._get_content())
        return service_pb2_grpc.GRPCInferenceServiceStub(self._channel).ModelInfer.future(message, timeout=timeout_s)

    def post(self, model: str, value: int) -> HTTPConnection:
        """A request over HTTP whose answer is not read."""
        tensor = {"name": "X", "shape": [1], "datatype": "INT32", "data": [value]}
        connection = HTTPConnection(self.server.http, timeout=TIMEOUT_S)
        connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}))
        return connection

    def close(self) -> None:
        """Lets go of everything that is still held."""
        self.notes.write("go on")
        self._channel.close()
        self._pool.shutdown()
        for name in self.notes.names():
            self.notes.remove(name)


@contextmanager
def held_requests(server: ServerProcess, notes: Notes) -> Iterator[HeldRequests]:
    """Requests to a server, and the end of all that are held."""
    made = HeldRequests(server, notes)
    try:
        yield made
    finally:
        made.close()
