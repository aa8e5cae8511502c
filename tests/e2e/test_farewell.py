"""How clients learn that a server stops: nobody's request is lost, and whoever comes too late is told why."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.attack import connect as link_to
from support.attack import rest
from support.models import add_model
from support.notes import Notes
from support.python_models import add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

STOPPING = "Server is stopping, it does not accept new requests"
UNFINISHED = "Server is stopping, the request was not finished in time"

# Answers when the test lets it.
HELD = """
class TritonPythonModel:
    def execute(self, requests):
        note("running")
        await_note("go")
        return [answer(Y=given(request)) for request in requests]
"""

Start = Callable[..., ServerProcess]


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def start(tmp_path: Path, notes: Notes, serve: Start) -> Start:
    """A server of a model that is quick, and of one that answers when it is told to."""
    repository = tmp_path / "models"
    add_model(repository, "double")
    add_python_model(repository, "held", HELD)
    return lambda *flags: serve(repository, *flags, environment=notes.environment)


def connect(server: ServerProcess) -> http.client.HTTPConnection:
    host, port = server.http.split(":")
    return http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)


def body(datatype: str, shape: list[int], data: list[float]) -> str:
    return json.dumps({"inputs": [{"name": "X", "shape": shape, "datatype": datatype, "data": data}]})


QUICK = ("/v2/models/double/infer", body("FP32", [1, 2], [1, 2]))
# The head of a request whose client waits to be told that its body is wanted.
UPLOAD = f"POST {QUICK[0]} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {len(QUICK[1])}\r\n\r\n"
SLOW = ("/v2/models/held/infer", body("INT32", [1], [7]))


@dataclass
class Call:
    """A request on a thread and a connection of its own."""

    server: ServerProcess
    status: int = 0
    text: str = ""
    ends: bool = False
    error: Exception | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with closing(connect(self.server)) as connection:
                connection.request("POST", *SLOW)
                response = connection.getresponse()
                self.status, self.ends = response.status, response.will_close
                self.text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self.error = error

    def wait(self) -> tuple[int, bool]:
        """The status, and whether the answer said that the connection ends."""
        self.thread.join(TIMEOUT_S)
        assert self.error is None, self.error
        return self.status, self.ends


@pytest.fixture
def held(notes: Notes) -> Iterator[Callable[[ServerProcess], Call]]:
    """Begins a request that its model works on until `notes` has "go"."""

    def begin(server: ServerProcess) -> Call:
        call = Call(server)
        notes.read("running")
        return call

    yield begin
    notes.write("go")


class Caller(threading.Thread):
    """Calls without a pause on one connection, until an answer says that the connection ends."""

    def __init__(self, call: Callable[[], bool]) -> None:
        """Takes a call, which says whether it was the last."""
        super().__init__(daemon=True)
        self._call = call
        self.calls = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self._call():
                self.calls += 1
        except Exception as error:
            self.error = error


def run_until_told(server: ServerProcess, calls: list[Callable[[], bool]]) -> None:
    """Has callers call a server that is asked to stop meanwhile, and asserts that each call is answered."""
    callers = [Caller(call) for call in calls]
    for caller in callers:
        caller.start()
    until(lambda: all(caller.calls for caller in callers))
    # While somebody is connected the server serves; callers that connect again may not be for a moment.
    with closing(link_to(server.http)):
        server.signal()
        for caller in callers:
            caller.join(TIMEOUT_S)
    assert {repr(caller.error): str(caller.error) for caller in callers if caller.error} == {}
    assert not any(caller.is_alive() for caller in callers)


def test_no_request_of_fifty_busy_clients_is_lost(start: Start) -> None:
    server = start("--exit-grace-secs=600")

    def call_on(connection: http.client.HTTPConnection) -> bool:
        connection.request("POST", *QUICK)
        response = connection.getresponse()
        text = response.read()
        assert (response.status, b"outputs" in text) == (200, True), text
        return response.will_close

    with ExitStack() as opened:
        connections = [opened.enter_context(closing(connect(server))) for _ in range(50)]
        run_until_told(server, [partial(call_on, connection) for connection in connections])
    # Nobody is connected any more: the rest of the grace is not waited for.
    assert server.wait() == 0


def test_no_call_of_busy_grpc_clients_is_lost(start: Start) -> None:
    server = start("--exit-grace-secs=600")
    tensor = grpc_client.InferInput("X", [1, 2], "FP32")
    tensor.set_data_from_numpy(np.ones((1, 2), np.float32))
    stopping = threading.Event()

    def call_on(client: grpc_client.InferenceServerClient, left: Iterator[int]) -> bool:
        client.infer("double", [tensor])
        # The library keeps to itself that it was told, and connects again: some calls on, it was.
        return stopping.is_set() and next(left) == 0

    def tell() -> None:
        server.wait_for_output("Waiting for in-flight requests to complete.")
        stopping.set()

    own = [("grpc.use_local_subchannel_pool", 1)]  # a connection of its own
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    with ExitStack() as opened:
        made = (grpc_client.InferenceServerClient(server.grpc, channel_args=own) for _ in range(10))
        clients = [opened.enter_context(client) for client in made]
        run_until_told(server, [partial(call_on, client, iter(range(20, -1, -1))) for client in clients])
    teller.join()
    assert server.wait() == 0


def test_an_idle_connection_is_served_within_the_grace(start: Start) -> None:
    server = start("--exit-grace-secs=600")
    with closing(connect(server)) as idle, closing(link_to(server.http)) as silent:
        idle.request("GET", "/v2/health/ready")
        assert idle.getresponse().read() == b""
        server.signal()
        until(lambda: is_draining(server))
        idle.request("POST", *QUICK)
        response = idle.getresponse()
        assert (response.status, response.will_close, b"outputs" in response.read()) == (200, True, True)
        silent.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = rest(silent)
        assert answer.startswith(b"HTTP/1.1 200 ") and b"connection: close\r\n" in answer
    # Nobody is connected any more: the rest of the grace is not waited for.
    assert server.wait() == 0


def is_draining(server: ServerProcess) -> bool:
    """Whether each answer says that its connection ends; the server is unready a moment before."""
    with closing(connect(server)) as connection:
        connection.request("GET", "/v2/health/ready")
        with connection.getresponse() as response:
            return response.will_close


def test_a_stopping_server_says_so_and_tells_what_it_waits_for(
    start: Start, held: Callable[[ServerProcess], Call], notes: Notes
) -> None:
    server = start("--exit-grace-secs=0")
    call = held(server)
    server.signal()
    server.wait_for_output("Waiting for in-flight requests to complete.")
    statuses = {}
    until(lambda: is_refusing(server))
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/double", "/v2/models/held/explain"):
        with closing(connect(server)) as connection:
            connection.request("GET", path)
            with connection.getresponse() as response:
                statuses[path.rsplit("/", 1)[1]] = (response.status, response.will_close)
    assert statuses == {"live": (200, True), "ready": (400, True), "double": (200, True), "explain": (200, True)}
    with grpc.insecure_channel(server.grpc) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")(b"", timeout=TIMEOUT_S)
        assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.UNAVAILABLE, STOPPING)
        live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
        assert live(b"", timeout=TIMEOUT_S, wait_for_ready=True) == b"\x08\x01"
    assert [refusal(server) for _ in range(50)] == [STOPPING] * 50
    host, port = server.metrics.split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)) as connection:
        connection.request("GET", "/metrics")
        with connection.getresponse() as response:
            assert response.status == 200
    notes.write("go")
    assert call.wait() == (200, True)
    assert server.wait() == 0


def refusal(server: ServerProcess) -> str:
    """Why an inference is refused; empty where it is not."""
    with closing(connect(server)) as connection:
        connection.request("POST", *QUICK)
        answer: dict[str, str] = json.loads(connection.getresponse().read())
        return answer.get("error", "")


def is_refusing(server: ServerProcess) -> bool:
    """Whether inferences are refused. A connection that was opened when the drain began may be closed."""
    try:
        return refusal(server) == STOPPING
    except (ConnectionError, http.client.HTTPException):
        return False


def test_an_upload_from_before_is_served(start: Start, held: Callable[[ServerProcess], Call], notes: Notes) -> None:
    server = start("--exit-grace-secs=0")
    call = held(server)
    with closing(link_to(server.http)) as link:
        link.sendall(UPLOAD.encode())
        assert link.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        server.signal()
        until(lambda: is_refusing(server))
        notes.write("go")
        assert call.wait() == (200, True)
        link.sendall(QUICK[1].encode())
        answer = rest(link)
    assert answer.startswith(b"HTTP/1.1 200 ") and b"outputs" in answer
    assert server.wait() == 0


@pytest.mark.parametrize("how", ["the time is up", "a second signal"])
def test_requests_that_are_cut_get_the_reason(
    start: Start, held: Callable[[ServerProcess], Call], notes: Notes, how: str
) -> None:
    server = start("--exit-timeout-secs=2" if how == "the time is up" else "--exit-timeout-secs=600")
    call = held(server)
    failures: list[Exception | None] = []
    done = threading.Event()

    def keep(result: object, error: Exception | None) -> None:
        failures.append(error)
        done.set()

    tensor = grpc_client.InferInput("X", [1], "INT32")
    tensor.set_data_from_numpy(np.array([1], np.int32))
    with grpc_client.InferenceServerClient(server.grpc) as client, closing(link_to(server.http)) as uploading:
        client.async_infer("held", [tensor], keep)
        until(lambda: requests(server, "held") == 2)
        uploading.sendall(UPLOAD.encode())
        assert uploading.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        server.signal()
        if how == "a second signal":
            server.wait_for_output("Waiting for in-flight requests to complete.")
            # Signals close to the first one are taken for the same wish.
            until(lambda: server.signal() or server.process.poll() is not None)
        assert call.wait() == (503, True)
        assert json.loads(call.text) == {"error": UNFINISHED}
        assert rest(uploading).endswith(f'{{"error":"{UNFINISHED}"}}'.encode())
        assert done.wait(TIMEOUT_S)
        assert str(failures[0]) == f"[StatusCode.UNAVAILABLE] {UNFINISHED}"
    assert server.wait() == 1
    assert "Exit timeout expired. Exiting immediately." in server.output


def requests(server: ServerProcess, model: str) -> int:
    """How many requests a model has: those that wait, and those that its processes hold."""
    with closing(connect(server)) as connection:
        connection.request("GET", f"/v2/models/{model}/explain")
        (found,) = json.loads(connection.getresponse().read())["models"]
    return int(found["queue"]["waiting"]) + sum(int(worker["requests"]) for worker in found["workers"])
