"""A well-behaved client that works on while others misbehave, and notices what it costs."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

import numpy as np
import tritonclient.grpc as grpc_client

from support.server import ServerProcess

BODY: Final = json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]})
INFER: Final = "/v2/models/double/infer"

# A pause between two requests: a friend asks often, and leaves the machine to the others.
_PAUSE_S: Final = 0.002
_TIMEOUT_S: Final = 60.0

# Latencies below this are noise of the machine that runs the tests.
NOISE_S: Final = 0.5


class Friend:
    """Asks the model `double` over HTTP and gRPC, each over one connection, for as long as the context lasts."""

    def __init__(self, server: ServerProcess) -> None:
        """Connects with the first request."""
        self._server = server
        self._stop = threading.Event()
        self._errors: list[Exception] = []
        self.latencies_s: list[float] = []
        self._threads = [
            threading.Thread(target=self._run, args=(door,)) for door in (self._over_http, self._over_grpc)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if error is None:
            assert not self._errors, self._errors
            assert self.latencies_s, "not one request was answered"

    @property
    def p99_s(self) -> float:
        """The latency that one request in a hundred exceeds, in seconds."""
        return float(np.quantile(self.latencies_s, 0.99))

    def _run(self, door: Callable[[], None]) -> None:
        try:
            door()
        except Exception as error:
            self._errors.append(error)

    def _repeat(self, ask: Callable[[], None]) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            ask()
            self.latencies_s.append(time.monotonic() - begun)
            self._stop.wait(_PAUSE_S)

    def _over_http(self) -> None:
        connection = http.client.HTTPConnection(self._server.http, timeout=_TIMEOUT_S)

        def ask() -> None:
            connection.request("POST", INFER, BODY)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text

        try:
            self._repeat(ask)
        finally:
            connection.close()

    def _over_grpc(self) -> None:
        tensor = grpc_client.InferInput("X", [1, 2], "FP32")
        tensor.set_data_from_numpy(np.array([[1, 2]], np.float32))
        with grpc_client.InferenceServerClient(self._server.grpc) as client:
            self._repeat(lambda: _assert_answer(client.infer("double", [tensor], client_timeout=_TIMEOUT_S)))


def _assert_answer(answer: grpc_client.InferResult) -> None:
    assert answer.as_numpy("Y").tolist() == [[2, 4]]
