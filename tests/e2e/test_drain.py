"""Stopping: what is in is answered, what is new is refused, and the time is bounded."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.models import add_model, busy
from support.python_models import ECHO, add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

# About a second of work: it surely still runs when the signal arrives.
STEPS = 6_000
# More work than any patience.
ENDLESS = 10**9


@pytest.fixture
def start(repository: Path, serve: Serve) -> Callable[..., ServerProcess]:
    add_model(repository, "busy", busy())
    # The model is slow: on a network thread it would hold up the connections that the tests look at.
    return lambda *flags: serve(repository, "--execution-threads=measured", *flags)


class Call:
    """A request that runs on a connection of its own."""

    def __init__(self, server: ServerProcess, steps: int) -> None:
        """Returns once the server works on it, or has."""
        self._connection = connect(server)
        self._connection.request("POST", "/v2/models/busy/infer", body(steps))
        self._answer: tuple[int, list[int]] | None = None
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()
        until(lambda: is_at_work(server) or self._answer is not None)

    def _wait(self) -> None:
        try:
            response = self._connection.getresponse()
            outputs = json.loads(response.read()).get("outputs", [{"data": []}])  # none in an error
            self._answer = (response.status, outputs[0]["data"])
        except OSError:  # the server went away
            pass
        self._connection.close()

    def answer(self) -> tuple[int, list[int]] | None:
        self._thread.join(TIMEOUT_S)
        return self._answer


def body(steps: int) -> str:
    return json.dumps({"inputs": [{"name": "STEPS", "shape": [1], "datatype": "INT64", "data": [steps]}]})


def connect(server: ServerProcess) -> http.client.HTTPConnection:
    host, port = server.http.split(":")
    return http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)


def is_at_work(server: ServerProcess) -> bool:
    """Whether the model executes a request."""
    with closing(connect(server)) as connection:
        connection.request("GET", "/v2/models/busy/explain")
        (model,) = json.loads(connection.getresponse().read())["models"]
    return bool(model["queue"]["busy_instances"])


def is_stopping(server: ServerProcess) -> bool:
    """Whether requests are refused for the reason that the server stops."""
    try:
        with closing(connect(server)) as connection:
            connection.request("POST", "/v2/repository/index")
            response = connection.getresponse()
            return response.status == 503 and b"Server is stopping" in response.read()
    except (ConnectionError, http.client.HTTPException):  # the connection was opened when the drain began
        return False


def is_refused(address: str) -> bool:
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=TIMEOUT_S).close()
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_request_is_answered_and_the_exit_code_is_0(start: Callable[..., ServerProcess], number: int) -> None:
    server = start()
    call = Call(server, STEPS)
    server.signal(number)
    assert call.answer() == (200, [STEPS])
    assert server.wait() == 0


def test_a_running_grpc_call_is_answered(start: Callable[..., ServerProcess]) -> None:
    server = start()
    with grpc_client.InferenceServerClient(server.grpc) as client:
        tensor = grpc_client.InferInput("STEPS", [1], "INT64")
        tensor.set_data_from_numpy(np.array([STEPS]))
        answered = threading.Event()
        answers: list[object] = []

        def keep(result: grpc_client.InferResult, error: object) -> None:
            answers.append(error or result.as_numpy("DONE").tolist())
            answered.set()

        client.async_infer("busy", [tensor], keep)
        until(lambda: is_at_work(server) or answered.is_set())
        server.signal()
        assert answered.wait(TIMEOUT_S)
        assert answers == [[STEPS]]
        assert server.wait() == 0


def test_a_connection_from_before_gets_no_new_work_done(start: Callable[..., ServerProcess]) -> None:
    server = start("--exit-timeout-secs=600", "--exit-grace-secs=0")
    with closing(connect(server)) as idle:
        idle.request("GET", "/v2/health/ready")
        assert idle.getresponse().read() == b""
        Call(server, ENDLESS)
        server.signal()
        until(lambda: is_stopping(server))
        assert status_of(idle) in (None, 503)
    server.kill()


def status_of(connection: http.client.HTTPConnection) -> int | None:
    """Status of one more inference on a connection; ``None`` if the server closes it instead."""
    connection.auto_open = 0  # or the client would open another connection
    try:
        connection.request("POST", "/v2/models/busy/infer", body(1))
        return connection.getresponse().status
    except (ConnectionError, http.client.HTTPException):
        return None


def test_new_connections_are_answered_while_a_request_runs(start: Callable[..., ServerProcess]) -> None:
    server = start("--exit-timeout-secs=600")
    call = Call(server, ENDLESS)
    server.signal()
    until(lambda: is_stopping(server))
    assert not is_refused(server.http) and not is_refused(server.grpc)
    assert server.process.poll() is None
    server.kill()
    assert call.answer() is None


def test_a_second_signal_ends_the_process_at_once(start: Callable[..., ServerProcess]) -> None:
    server = start("--exit-timeout-secs=600")
    call = Call(server, ENDLESS)
    server.signal()
    server.wait_for_output("Waiting for in-flight requests to complete.")
    # Signals close to the first one are taken for the same wish, so that this one is repeated until it is a second.
    until(lambda: server.signal() or server.process.poll() is not None)
    assert call.answer() == (503, [])
    assert server.wait() == 1
    assert "Exit timeout expired. Exiting immediately." in server.output


def test_the_drain_is_bounded(start: Callable[..., ServerProcess]) -> None:
    server = start("--exit-timeout-secs=1")
    call = Call(server, ENDLESS)
    server.signal()
    assert call.answer() == (503, [])
    assert server.wait() == 1
    assert "Exit timeout expired. Exiting immediately." in server.output


def test_an_idle_connection_does_not_hold_the_exit(start: Callable[..., ServerProcess]) -> None:
    server = start("--exit-timeout-secs=600")  # longer than the test's patience
    idle = connect(server)
    idle.request("GET", "/v2/health/live")
    assert idle.getresponse().read() == b""
    assert server.stop() == 0
    idle.close()


@pytest.fixture
def held_load(repository: Path) -> Path:
    """A pipe; a model of the repository loads until whoever opens it for writing closes it."""
    pipe = repository.parent / "pipe"
    os.mkfifo(pipe)
    add_python_model(repository, "slow", f"{ECHO}    def initialize(self, args):\n        open({str(pipe)!r}).read()\n")
    return pipe


def test_a_signal_while_models_load_ends_the_start(repository: Path, held_load: Path) -> None:
    with ServerProcess(repository) as server:
        with held_load.open("w"):  # opens once the model reads
            server.signal()
            server.wait_for_output(r"Signal \(15\) Received")
        assert server.wait() == 0
        assert "Started HTTPService" not in server.output


def test_a_load_that_hangs_does_not_outlast_the_exit_time_out(repository: Path, held_load: Path) -> None:
    with ServerProcess(repository, "--exit-timeout-secs=1") as server, held_load.open("w"):
        server.signal()
        assert server.wait() == 1
        assert "Exit timeout expired. Exiting immediately." in server.output
