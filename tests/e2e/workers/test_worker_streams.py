"""Decoupled models over gRPC: any number of responses, in order, as fast as they are read, until the client leaves."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import numpy as np
import psutil
import pytest
from support.endpoints import ENDPOINTS, Refusal, tensors
from support.notes import Notes
from support.processes import shared_bytes, workers_of
from support.python_models import DECOUPLED, add_python_model
from support.server import ServerProcess
from support.streams import Stream
from support.waiting import until
from tritonclient import grpc as grpc_client
from tritonclient.grpc import service_pb2

Serve = Callable[..., ServerProcess]

# Responses that the slow reader takes, and what may be under way beyond them: 64 or 16 MiB in the hands of model and
# server, and what the buffers of one connection and of its client hold.
RESPONSES = 300
RESPONSE_BYTES = 256 << 10
UNDER_WAY = 64
BUFFERED = (16 << 20) // RESPONSE_BYTES

COUNTS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for index in range(int(given(request)[0])):
                sender.send(answer(Y=np.array([index], np.int32)))
            sender.send(flags=FINAL)
"""

# Answers from threads, after `execute` has returned.
LATER = """
class TritonPythonModel:
    def work(self, sender, count):
        for index in range(count):
            sender.send(answer(Y=np.array([index], np.int32)), flags=FINAL if index == count - 1 else 0)

    def execute(self, requests):
        for request in requests:
            arguments = (request.get_response_sender(), int(given(request)[0]))
            threading.Thread(target=self.work, args=arguments).start()
"""

# Notes after each response how many it has sent.
FLOODS = f"""
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for index in range(int(given(request)[0])):
                if sender.is_cancelled():
                    note("cancelled")
                    break
                sender.send(answer(Y=np.full({RESPONSE_BYTES // 4}, index, np.int32)))
                note("sent", index + 1)
            sender.send(flags=FINAL)
            note("over")
"""

WATCHES = """
class TritonPythonModel:
    def execute(self, requests):
        note("begun")
        while not requests[0].is_cancelled():
            time.sleep(0.002)
        note("cancelled")
        return [answer(Y=given(request)) for request in requests]
"""

WATCHES_SENDER = """
class TritonPythonModel:
    def execute(self, requests):
        sender = requests[0].get_response_sender()
        sender.send(answer(Y=np.array([1], np.int32)))
        note("begun")
        while not sender.is_cancelled():
            time.sleep(0.002)
        sender.send(flags=FINAL)
        note("cancelled")
"""


@pytest.fixture(scope="module")
def pad(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture
def notes(pad: Notes) -> Notes:
    """The models' notes, without those of the test before."""
    for name in pad.names():
        pad.remove(name)
    return pad


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve, pad: Notes) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_python_model(repository, "counts", COUNTS, config=DECOUPLED)
    add_python_model(repository, "later", LATER, config=DECOUPLED)
    add_python_model(repository, "floods", FLOODS, config=DECOUPLED)
    add_python_model(repository, "watches", WATCHES)
    add_python_model(repository, "watches_sender", WATCHES_SENDER, config=DECOUPLED)
    return serve_module(repository, "--disable-auto-complete-config", environment=pad.environment)


def test_responses_come_in_order_and_end(server: ServerProcess) -> None:
    with Stream(server) as stream:
        for model in ("counts", "later"):
            for count in (3, 1, 500):
                stream.send(model, {"X": [count]})
                assert [int(reply["Y"][0]) for reply in stream.replies()] == list(range(count))
        stream.send("counts", {"X": [0]})
        assert list(stream.replies()) == []


def test_requests_of_one_stream_are_distinguished_by_id(server: ServerProcess) -> None:
    with Stream(server) as stream:
        for number in range(8):
            stream.send("later", {"X": [20]}, request_id=str(number))
        got: dict[str, list[int]] = {}
        over = 0
        while over < 8:
            reply, last, request_id = stream.receive()
            assert not isinstance(reply, Refusal)
            got.setdefault(request_id, []).append(int(reply["Y"][0]))
            over += last
        assert got == {str(number): list(range(20)) for number in range(8)}


def test_a_unary_call_of_a_decoupled_model_is_refused(server: ServerProcess) -> None:
    for protocol in ENDPOINTS:
        with (
            ENDPOINTS[protocol](server) as endpoint,
            pytest.raises(Refusal, match="doesn't support models with decoupled"),
        ):
            endpoint.ask("counts", {"X": [1]})


def test_a_model_is_held_back_while_its_responses_are_unread(server: ServerProcess, notes: Notes) -> None:
    worker = next(process for process in workers_of(server) if _serves(process, "floods"))
    processes = [psutil.Process(server.process.pid), worker]
    before = sum(process.memory_info().rss for process in processes)
    # Shared pages count in both processes; beside them there are copies on their way to the socket.
    allowed = 3 * (UNDER_WAY + BUFFERED) * RESPONSE_BYTES
    # A window that does not grow: how much the client lets the server send ahead is no guess then.
    with Stream(server, ("grpc.http2.bdp_probe", 0)) as stream:
        stream.send("floods", {"X": [10**9]})
        for number in range(RESPONSES):
            if number % 100 == 0:
                until(lambda: _stands_still(notes), "the model was not held back")
                assert int(notes.read("sent")) - number <= UNDER_WAY + BUFFERED
                assert sum(process.memory_info().rss for process in processes) - before < allowed
                assert shared_bytes(server.process.pid) < allowed
            reply, _, _ = stream.receive()
            assert not isinstance(reply, Refusal)
            assert np.array_equal(reply["Y"], np.full(RESPONSE_BYTES // 4, number, np.int32))
    notes.read("over")


def _stands_still(notes: Notes) -> bool:
    """Whether the model sends nothing for a while. One that is never held back never does."""
    before = notes.read("sent")
    time.sleep(0.1)
    return notes.read("sent") == before


def _serves(process: psutil.Process, model: str) -> bool:
    return model in Path(f"/proc/{process.pid}/comm").read_text()


def test_a_model_that_is_held_back_learns_that_its_reader_left(server: ServerProcess, notes: Notes) -> None:
    with Stream(server) as stream:
        stream.send("floods", {"X": [10**9]})
        stream.receive()
        notes.read("sent")
    notes.read("cancelled")
    notes.read("over")
    notes.remove("over")
    with Stream(server) as stream:
        stream.send("floods", {"X": [2]})
        assert len(list(stream.replies())) == 2
    notes.read("over")  # the last of them, so that none comes into another test


def test_a_request_whose_connection_closes_is_cancelled(server: ServerProcess, notes: Notes) -> None:
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port))) as connection:
        body = b'{"inputs":[{"name":"X","shape":[1],"datatype":"INT32","data":[1]}]}'
        head = f"POST /v2/models/watches/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        notes.read("begun")
    notes.read("cancelled")


def test_a_call_that_is_cancelled_is_cancelled_in_the_model(server: ServerProcess, notes: Notes) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        method = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=service_pb2.ModelInferRequest.SerializeToString,
            response_deserializer=service_pb2.ModelInferResponse.FromString,
        )
        (tensor,) = tensors(grpc_client, {"X": np.array([1], np.int32)})
        message = service_pb2.ModelInferRequest(model_name="watches", inputs=[tensor._get_tensor()])
        message.raw_input_contents.append(tensor._get_content())
        call = method.future(message)
        notes.read("begun")
        call.cancel()
        notes.read("cancelled")


def test_a_stream_that_is_cancelled_is_cancelled_in_the_sender(server: ServerProcess, notes: Notes) -> None:
    with Stream(server) as stream:
        stream.send("watches_sender", {"X": [1]})
        stream.receive()
        notes.read("begun")
        stream.cancel()
        notes.read("cancelled")
    notes.remove("cancelled")
    # The model is free for the next one.
    with Stream(server) as stream:
        stream.send("watches_sender", {"X": [1]})
        stream.receive()
    notes.read("cancelled")  # the last of its notes, so that none comes into another test


def test_a_half_closed_stream_still_gets_its_responses(server: ServerProcess) -> None:
    with Stream(server) as stream:
        stream.send("counts", {"X": [5]})
        stream.half_close()
        assert [int(reply["Y"][0]) for reply in stream.replies()] == [0, 1, 2, 3, 4]
        with pytest.raises(StopIteration):
            stream.receive()
