"""The stream that Python clients are built on: order, waits, ends and failures, against a real server."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from alipes._core import ClientStream
from alipes.errors import TransportError
from support.models import add_model, times
from support.ports import unused_address
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

Serve = Callable[..., ServerProcess]
Array = npt.NDArray[np.float32]

FORKED = """
import os
import sys

import numpy as np
from alipes._core import ClientStream
from alipes.errors import TransportError


def ask(stream, request_id):
    stream.send("double", "", [("X", "FP32", [1, 2], np.ones((1, 2), np.float32))], request_id=request_id)
    assert stream.receive(1)[0][0] == request_id


def child():
    try:
        ask(stream, "b")
    except TransportError as error:
        assert "forked" in str(error), error
    ask(ClientStream(sys.argv[1]), "c")


stream = ClientStream(sys.argv[1])
ask(stream, "a")
pid = os.fork()
if pid == 0:
    child()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
ask(stream, "d")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(columns="columns"))
    add_python_model(repository, "words", signature="X: BYTES[-1] -> Y: BYTES[-1]")
    add_python_model(repository, "tells", REPORTS, config=DECOUPLED)
    return serve_module(repository)


@pytest.fixture
def stream(server: ServerProcess) -> Iterator[ClientStream]:
    stream = ClientStream(server.grpc)
    yield stream
    stream.cancel()


def send(stream: ClientStream, value: float, request_id: str, columns: int = 2) -> None:
    rows = np.full((1, columns), value, np.float32)
    stream.send("double", "", [("X", "FP32", rows.shape, rows)], request_id=request_id)


def receive(stream: ClientStream, count: int) -> list[tuple[str, dict[str, Array] | None, str | None, bool | None]]:
    """So many responses."""
    received: list[tuple[str, dict[str, Array] | None, str | None, bool | None]] = []
    while len(received) < count:
        batch = stream.receive(count - len(received), TIMEOUT_S)
        assert batch, stream.status()
        received += batch
    return received


def test_responses_come_in_the_order_of_the_requests_with_their_outputs(stream: ClientStream) -> None:
    for number in range(2000):
        send(stream, number, str(number))
    responses = receive(stream, 2000)
    assert [response[0] for response in responses] == [str(number) for number in range(2000)]
    for number, (_, outputs, error, last) in enumerate(responses):
        assert outputs is not None
        assert (outputs["Y"].tolist(), error, last) == ([[2.0 * number] * 2], None, True)


def test_an_array_may_be_changed_as_soon_as_it_was_sent(stream: ClientStream) -> None:
    rows = np.empty((1, 4096), np.float32)
    for number in range(50):
        rows[:] = number
        stream.send("double", "", [("X", "FP32", rows.shape, rows)])
    for number, (_, outputs, _, _) in enumerate(receive(stream, 50)):
        assert outputs is not None
        assert np.all(outputs["Y"] == 2 * number)


@pytest.mark.parametrize("columns", [1, 100_000, 3_000_000])
def test_outputs_are_read_only_and_outlive_the_stream(server: ServerProcess, columns: int) -> None:
    stream = ClientStream(server.grpc)
    send(stream, 3, "a", columns)
    ((_, outputs, _, _),) = receive(stream, 1)
    del stream
    gc.collect()
    assert outputs is not None
    assert outputs["Y"].shape == (1, columns)
    assert np.all(outputs["Y"] == 6)
    with pytest.raises(ValueError, match="read-only"):
        outputs["Y"][0, 0] = 1


def test_strings_go_out_and_come_back(stream: ClientStream) -> None:
    words = np.array(["one", b"two", ""], object)
    stream.send("words", "1", [("X", "BYTES", [3], words)], outputs=["Y"])
    ((_, outputs, error, _),) = receive(stream, 1)
    assert outputs is not None, error
    assert outputs["Y"].tolist() == [b"one", b"two", b""]


def test_one_bad_request_fails_alone(stream: ClientStream) -> None:
    send(stream, 1, "good")
    wrong = np.zeros((1, 2), np.int32)
    stream.send("double", "", [("X", "INT32", [1, 2], wrong)], request_id="bad")
    stream.send("nobody", "", [("X", "INT32", [1, 2], wrong)], request_id="lost")
    send(stream, 2, "better")
    errors = {request_id: error for request_id, _, error, _ in receive(stream, 4)}
    assert (errors["good"], errors["better"]) == (None, None)
    assert "INT32" in (errors["bad"] or "")
    assert "nobody" in (errors["lost"] or "")
    assert stream.status() is None


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (("X", "FP32", [1, 3], np.zeros(2, np.float32)), r"input 'X' has 8 bytes, but FP32 of shape \[1,3\] takes 12"),
        (("X", "FLOAT", [2], np.zeros(2, np.float32)), "unknown datatype 'FLOAT'"),
        (("X", "FP32", [-1], np.zeros(2, np.float32)), r"input 'X' has the shape \[-1\]"),
        (("X", "FP32", [2], np.zeros((2, 2), np.float32)[:, 0]), "contiguous"),
    ],
)
def test_what_cannot_be_sent_is_refused_at_once(
    stream: ClientStream, tensor: tuple[str, str, list[int], Array], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        stream.send("double", "", [tensor])


def test_a_half_closed_stream_answers_all_that_was_sent_and_ends(stream: ClientStream) -> None:
    for number in range(100):
        send(stream, number, str(number))
    stream.half_close()
    with pytest.raises(TransportError, match="half-closed"):
        send(stream, 0, "late")
    assert len(receive(stream, 100)) == 100
    assert stream.receive(1, TIMEOUT_S) is None
    assert stream.status() == ("OK", "")


def test_a_wait_for_nothing_gives_an_empty_list(stream: ClientStream) -> None:
    assert stream.receive(1, 0.0) == []
    assert stream.receive(1, 0.01) == []


def test_cancelling_wakes_who_waits(stream: ClientStream) -> None:
    outcome: list[object] = []
    waiter = threading.Thread(target=lambda: outcome.append(stream.receive(1)))
    waiter.start()
    stream.cancel()
    waiter.join(TIMEOUT_S)
    assert outcome == [None]
    assert stream.status() == ("CANCELLED", "Locally cancelled by application!")
    with pytest.raises(TransportError, match="ended"):
        send(stream, 0, "late")


def test_many_threads_send_on_one_stream(stream: ClientStream) -> None:
    def sender(first: int) -> None:
        for number in range(first, first + 200):
            send(stream, number, str(number))

    threads = [threading.Thread(target=sender, args=(200 * index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    answers = {int(request_id): outputs for request_id, outputs, _, _ in receive(stream, 800)}
    for thread in threads:
        thread.join()
    assert sorted(answers) == list(range(800))
    assert all(outputs is not None and outputs["Y"][0, 0] == 2 * number for number, outputs in answers.items())


def test_more_than_the_buffers_hold_goes_through(stream: ClientStream) -> None:
    received: list[int] = []

    def reader() -> None:
        received.extend(int(request_id) for request_id, *_ in receive(stream, 60))

    thread = threading.Thread(target=reader)
    thread.start()
    for number in range(60):
        send(stream, number, str(number), columns=500_000)
    thread.join()
    assert received == list(range(60))


def test_a_server_that_dies_ends_the_stream_with_a_status(repository: Path, serve: Serve) -> None:
    add_model(repository, "double")
    server = serve(repository)
    stream = ClientStream(server.grpc)
    send(stream, 1, "a")
    receive(stream, 1)
    server.kill()
    assert stream.receive(1, TIMEOUT_S) is None
    status = stream.status()
    assert status is not None
    assert status[0] == "UNAVAILABLE"


def test_an_address_without_a_server_is_a_transport_error() -> None:
    address = unused_address()
    with pytest.raises(TransportError, match=address):
        ClientStream(address)
    with pytest.raises(TransportError, match="expected host:port"):
        ClientStream("http://localhost")


def test_a_forked_process_opens_streams_of_its_own(server: ServerProcess) -> None:
    command = [sys.executable, "-c", FORKED, server.grpc]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert run.returncode == 0, run.stderr


def test_each_response_of_a_decoupled_model_says_whether_it_is_the_last(stream: ClientStream) -> None:
    values = np.array([1, 2, 3], np.int32)
    parameters = {"triton_enable_empty_final_response": True}
    stream.send("tells", "", [("X", "INT32", [3], values)], request_id="a", parameters=parameters)
    responses = receive(stream, 4)
    assert [response[0] for response in responses] == ["a"] * 4
    assert [response[3] for response in responses] == [False, False, False, True]
    assert [int(outputs["Y"][0]) for _, outputs, _, last in responses if outputs and not last] == [1, 2, 3]
