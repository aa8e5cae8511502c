"""Requests in flight take no more memory than they are given, and small ones pass beside large ones."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from support.http2 import DATA, Connection, frame
from support.http2 import call as head_of_call
from support.notes import Notes
from support.python_models import add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until
from tritonclient.grpc import service_pb2, service_pb2_grpc

Start = Callable[..., ServerProcess]

LIMIT = 4 << 20

# A body that needs more than half of what large ones may take.
LARGE = np.full((LIMIT >> 1) // 4, 100, np.int32)
SMALL = np.zeros((64 << 10) // 4, np.int32)

HOLDS = """
class TritonPythonModel:
    def execute(self, requests):
        note("begun")
        await_note("release")
        return [answer(Y=given(request)[:1]) for request in requests]
"""

# Answers with more than any socket takes in.
WIDE = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=np.zeros(8 << 20, np.int32)) for _ in requests]
"""

# Ends its process once a request is there.
DIES = """
class TritonPythonModel:
    def execute(self, requests):
        note("begun")
        await_note("release")
        os._exit(1)
"""

# Takes its time to be loaded.
LATE = """
class TritonPythonModel:
    def initialize(self, arguments):
        note("loading")
        await_note("release")

    def execute(self, requests):
        return [answer(Y=given(request)) for request in requests]
"""

INFER = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"


@pytest.fixture
def server(repository: Path, start: Start) -> ServerProcess:
    add_python_model(repository, "holds", HOLDS)
    add_python_model(repository, "dies", DIES)
    add_python_model(repository, "wide", WIDE)
    add_python_model(repository, "echo")
    return start(f"--max-inflight-bytes={LIMIT}")


def ask(
    server: ServerProcess, model: str, array: Any, *, as_json: bool = False, coding: str = ""
) -> http.client.HTTPConnection:
    """Sends a request; the answer is still to be read. Its outputs have the form of its input."""
    tensor = {"name": "X", "shape": [array.size], "datatype": "INT32"}
    if as_json:
        head, tail = json.dumps({"inputs": [tensor | {"data": array.tolist()}]}).encode(), b""
    else:
        binary = {"inputs": [tensor | {"parameters": {"binary_data_size": array.nbytes}}]}
        head = json.dumps(binary | {"parameters": {"binary_data_output": True}}).encode()
        tail = array.tobytes()
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.connect()
    # The system would else take in any answer before it is read.
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    headers = {} if as_json else {"Inference-Header-Content-Length": str(len(head))}
    body = head + tail
    if coding:
        headers, body = headers | {"Content-Encoding": coding}, gzip.compress(body)
    connection.request("POST", f"/v2/models/{model}/infer", body, headers)
    return connection


def outcome(connection: http.client.HTTPConnection) -> tuple[int, str]:
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, text


def has_room(server: ServerProcess, length: int) -> bool:
    """Whether a body of so many bytes would be read; none is sent, so none takes room."""
    host, port = server.http.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as link:
        link.sendall(
            b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: 100\r\n"
            + f"Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        status = link.recv(12)
    assert status in (b"HTTP/1.1 100", b"HTTP/1.1 503"), status
    return status.endswith(b"100")


@pytest.mark.parametrize("as_json", [False, True])
def test_what_waits_takes_room_until_it_is_answered(server: ServerProcess, notes: Notes, as_json: bool) -> None:
    # Numbers as text take more than half of the room, and together with what they become they have to fit.
    held = ask(server, "holds", LARGE[: LARGE.size * 7 // 10] if as_json else LARGE, as_json=as_json)
    notes.read("begun")
    status, refused = outcome(ask(server, "echo", LARGE))
    assert status == 503, refused
    assert "bytes does not fit beside the requests and answers in flight" in refused
    assert outcome(ask(server, "echo", SMALL))[0] == 200
    notes.write("release")
    assert outcome(held)[0] == 200
    until(lambda: has_room(server, LARGE.nbytes))
    assert outcome(ask(server, "echo", LARGE))[0] == 200


def test_a_request_keeps_its_room_after_its_caller_left(server: ServerProcess, notes: Notes) -> None:
    running = ask(server, "holds", SMALL)
    notes.read("begun")
    leaving = ask(server, "holds", LARGE)
    until(lambda: not has_room(server, LARGE.nbytes))
    leaving.close()
    notes.write("release")
    assert outcome(running)[0] == 200
    until(lambda: has_room(server, LARGE.nbytes))


def test_an_announcement_takes_no_room(server: ServerProcess) -> None:
    liars = []
    for _ in range(20):
        liar = socket.create_connection(server.http.rsplit(":", 1), timeout=TIMEOUT_S)
        liar.sendall(
            b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: 100\r\n"
            + f"Content-Length: {LIMIT // 2}\r\n\r\n{{".encode()
        )
        liars.append(liar)
    assert outcome(ask(server, "echo", SMALL))[0] == 200
    assert outcome(ask(server, "echo", LARGE))[0] == 200
    for liar in liars:
        liar.close()


def test_a_body_that_can_never_fit_is_refused_before_it_is_read(server: ServerProcess) -> None:
    assert not has_room(server, LIMIT)
    assert has_room(server, LIMIT // 8 * 7)


@pytest.mark.parametrize("as_json", [False, True])
def test_an_unread_answer_takes_room_until_its_connection_ends(server: ServerProcess, as_json: bool) -> None:
    unread = ask(server, "wide", SMALL[:4], as_json=as_json)
    # Once it is on its way; until then the room of its tensors goes over to the text that is made of them.
    assert unread.sock.recv(1, socket.MSG_PEEK)
    assert not has_room(server, LARGE.nbytes)
    # It alone is more than there is: not even a small request is taken in.
    status, text = outcome(ask(server, "echo", SMALL[:4]))
    assert (status, "does not fit beside" in text) == (503, True), text
    unread.close()
    until(lambda: has_room(server, LARGE.nbytes))
    assert outcome(ask(server, "echo", SMALL[:4]))[0] == 200


def test_a_compressed_body_takes_the_room_of_what_it_expands_to(server: ServerProcess, notes: Notes) -> None:
    held = ask(server, "holds", LARGE)
    notes.read("begun")
    status, text = outcome(ask(server, "echo", LARGE, coding="gzip"))
    assert (status, "does not fit beside" in text) == (503, True), text
    notes.write("release")
    assert outcome(held)[0] == 200
    until(lambda: has_room(server, LARGE.nbytes))
    assert outcome(ask(server, "echo", LARGE, coding="gzip"))[0] == 200
    until(lambda: has_room(server, LIMIT // 8 * 7))


def test_a_worker_that_dies_with_a_request_gives_its_room_back(server: ServerProcess, notes: Notes) -> None:
    lost = ask(server, "dies", LARGE)
    notes.read("begun")
    assert not has_room(server, LARGE.nbytes)
    notes.write("release")
    assert outcome(lost)[0] >= 400
    until(lambda: has_room(server, LIMIT // 8 * 7))


def inference(model: str, array: Any) -> service_pb2.ModelInferRequest:
    request = service_pb2.ModelInferRequest(model_name=model, raw_input_contents=[array.tobytes()])
    request.inputs.add(name="X", datatype="INT32", shape=[array.size])
    return request


def call(stub: service_pb2_grpc.GRPCInferenceServiceStub, array: Any, **more: Any) -> Any:
    return stub.ModelInfer(inference("echo", array), timeout=TIMEOUT_S, **more)


@pytest.mark.parametrize("method", [INFER, STREAM])
def test_answers_for_which_a_client_of_grpc_opens_no_window_take_room(server: ServerProcess, method: str) -> None:
    no_window = struct.pack(">HI", 4, 0)
    with Connection(server.grpc, settings=no_window) as connection:
        message = inference("wide", SMALL[:4]).SerializeToString()
        prefix = struct.pack(">BI", 0, len(message))
        connection.send(head_of_call(1, method), frame(DATA, method == INFER, 1, prefix + message))
        until(lambda: not has_room(server, LARGE.nbytes))
    until(lambda: has_room(server, LARGE.nbytes))


def test_a_call_that_is_withdrawn_while_it_waits_gives_its_room_back(server: ServerProcess, notes: Notes) -> None:
    running = ask(server, "holds", SMALL)
    notes.read("begun")
    with grpc.insecure_channel(server.grpc) as channel:
        waiting = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer.future(inference("holds", LARGE))
        until(lambda: not has_room(server, LARGE.nbytes))
        waiting.cancel()
        notes.write("release")
        assert outcome(running)[0] == 200
        until(lambda: has_room(server, LARGE.nbytes))


def test_a_compressed_message_takes_the_room_of_what_it_expands_to(server: ServerProcess, notes: Notes) -> None:
    held = ask(server, "holds", LARGE)
    notes.read("begun")
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            call(stub, LARGE, compression=grpc.Compression.Gzip)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        notes.write("release")
        assert outcome(held)[0] == 200
        until(lambda: has_room(server, LARGE.nbytes))
        call(stub, LARGE, compression=grpc.Compression.Gzip)


def load(server: ServerProcess, model: str, padding: int) -> http.client.HTTPConnection:
    """Asks for a model with so many bytes of configuration; the answer is still to be read."""
    ports = {
        kind: [{"name": name, "data_type": "TYPE_INT32", "dims": [-1]}]
        for kind, name in [("input", "X"), ("output", "Y")]
    }
    config = {"name": model, "backend": "python", "parameters": {"padding": {"string_value": "x" * padding}}, **ports}
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    body = json.dumps({"parameters": {"config": json.dumps(config)}})
    connection.request("POST", f"/v2/repository/models/{model}/load", body)
    return connection


def test_what_comes_with_a_load_takes_room_until_the_model_is_loaded(
    repository: Path, start: Start, notes: Notes
) -> None:
    add_python_model(repository, "echo")
    add_python_model(repository, "late", LATE)
    explicit = ("--model-control-mode=explicit", "--load-model=echo")
    server = start(f"--max-inflight-bytes={LIMIT}", *explicit)
    loading = load(server, "late", LIMIT // 4)
    notes.read("loading")
    assert not has_room(server, LARGE.nbytes)
    assert outcome(load(server, "echo", LIMIT // 4))[0] == 503
    with grpc.insecure_channel(server.grpc) as channel, pytest.raises(grpc.RpcError) as refused:
        request = service_pb2.RepositoryModelLoadRequest(model_name="echo")
        request.parameters["file:1/model.py"].bytes_param = bytes(LIMIT // 4)
        service_pb2_grpc.GRPCInferenceServiceStub(channel).RepositoryModelLoad(request, timeout=TIMEOUT_S)
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    # The client may leave: the control plane still has the files of its request.
    loading.close()
    assert not has_room(server, LARGE.nbytes)
    notes.write("release")
    until(lambda: has_room(server, LIMIT // 8 * 7))
    assert outcome(load(server, "echo", LIMIT // 4)) == (200, "")


def test_grpc_refuses_as_well(server: ServerProcess, notes: Notes) -> None:
    held = ask(server, "holds", LARGE)
    notes.read("begun")
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            call(stub, LARGE)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        call(stub, SMALL)
        notes.write("release")
        assert outcome(held)[0] == 200
        until(lambda: has_room(server, LARGE.nbytes))
        call(stub, LARGE)
