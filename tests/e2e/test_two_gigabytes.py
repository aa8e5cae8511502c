"""Requests where 32 bits end: as large as a message may be, a byte larger, and in shared memory that is larger."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from support import http2
from support.models import add_model
from support.python_models import add_python_model
from support.regions import ALLOWED, RegionClient, SharedObject
from support.server import ServerProcess
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

pytestmark = [pytest.mark.proof, pytest.mark.alone, pytest.mark.timeout(600)]

LARGEST = 2**31 - 1
PIECE = bytes(1 << 20)
# Two requests that follow each other, the memory of the first not yet given back.
ROOM = "--max-inflight-bytes=6000000000"

PORTS = """max_batch_size: 0
input [ { name: "X" data_type: TYPE_UINT8 dims: [ -1 ] } ]
output [ { name: "ENDS" data_type: TYPE_UINT8 dims: [ 2 ] }, { name: "COUNT" data_type: TYPE_INT64 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
ENDS = """
class TritonPythonModel:
    def execute(self, requests):
        x = [given(request) for request in requests]
        return [answer(ENDS=one[[0, -1]], COUNT=np.array([one.size])) for one in x]
"""


def ends() -> onnx.ModelProto:
    """The first and the last element of X, and how many there are."""
    x = helper.make_tensor_value_info("X", TensorProto.UINT8, ["n"])
    outputs = [helper.make_tensor_value_info("ENDS", TensorProto.UINT8, [2])]
    outputs.append(helper.make_tensor_value_info("COUNT", TensorProto.INT64, [1]))
    nodes = [helper.make_node("Gather", ["X", "both"], ["ENDS"]), helper.make_node("Shape", ["X"], ["COUNT"])]
    both = helper.make_tensor("both", TensorProto.INT64, [2], [0, -1])
    model = helper.make_model(
        helper.make_graph(nodes, "model", [x], outputs, [both]), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    return model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "engine", ends(), config=f'backend: "onnxruntime"\n{PORTS}')
    signature = "X: UINT8[-1] -> ENDS: UINT8[2], COUNT: INT64[1]"
    add_python_model(repository, "process", ENDS, signature=signature)
    return serve_module(repository, ALLOWED, ROOM)


def content(size: int) -> Iterator[bytes]:
    """A tensor of zeros between a 1 and a 2, in pieces."""
    yield b"\1"
    left = size - 2
    while left > 0:
        yield PIECE[:left]
        left -= len(PIECE)
    yield b"\2"


def post(server: ServerProcess, model: str, body_bytes: int) -> tuple[int, dict[str, Any], int]:
    """Status, document, and the elements that were sent, of a body of so many bytes. A refusal may come before it."""
    host, _, port = server.http.rpartition(":")
    tensor = {"name": "X", "datatype": "UINT8", "shape": [0], "parameters": {"binary_data_size": 0}}
    empty = json.dumps({"inputs": [tensor]}).encode()
    # Two numbers of ten digits stand where the zeros are.
    size = body_bytes - len(empty) - 2 * 9
    tensor |= {"shape": [size], "parameters": {"binary_data_size": size}}
    header = json.dumps({"inputs": [tensor]}).encode()
    assert len(header) + size == body_bytes
    head = [f"POST /v2/models/{model}/infer HTTP/1.1", "Host: x", f"Content-Length: {body_bytes}"]
    head += [f"Inference-Header-Content-Length: {len(header)}", "Connection: close", "", ""]
    with socket.create_connection((host, int(port)), timeout=300) as link:
        link.sendall("\r\n".join(head).encode() + header)
        if body_bytes <= LARGEST:
            for piece in content(size):
                link.sendall(piece)
        answer = link.makefile("rb").read()
    lines, _, body = answer.partition(b"\r\n\r\n")
    return int(lines.split()[1]), json.loads(body), size


@pytest.mark.parametrize("model", ["engine", "process"])
def test_the_largest_http_body_is_answered(server: ServerProcess, model: str) -> None:
    status, document, size = post(server, model, LARGEST)
    assert status == 200, document
    assert {one["name"]: one["data"] for one in document["outputs"]} == {"ENDS": [1, 2], "COUNT": [size]}


def test_a_larger_http_body_is_refused_before_it_is_sent(server: ServerProcess) -> None:
    status, document, _ = post(server, "engine", LARGEST + 1)
    assert status == 400
    assert str(LARGEST) in document["error"]


def call(server: ServerProcess, model: str, message_bytes: int) -> tuple[bytes, int]:
    """All that the server sends back to a message of so many bytes, and the elements that it had."""
    message = service_pb2.ModelInferRequest(model_name=model)
    message.inputs.add(name="X", datatype="UINT8", shape=[LARGEST])
    # The shape and the length of the contents take five bytes each, whatever their number is near the largest.
    size = message_bytes - len(message.SerializeToString()) - 6
    message.inputs[0].shape[0] = size
    head = message.SerializeToString() + b"\x3a" + varint(size)
    assert len(head) + size == message_bytes
    came = b""
    with http2.Connection(server.grpc) as link:
        link.send(http2.call(1, "/inference.GRPCInferenceService/ModelInfer"))
        send(link, b"\0" + struct.pack(">I", message_bytes) + head, content(size))
        for frame in link.frames():
            if frame.stream == 1:
                came += frame.payload
                if frame.flags & http2.END_STREAM:
                    break
    return came, size


def send(link: http2.Connection, first: bytes, pieces: Iterator[bytes]) -> None:
    """Sends the data of stream 1, no more at a time than the server has opened its windows for."""
    windows = {0: 65_535, 1: 65_535}
    frames = link.frames()
    settings = next(frame for frame in frames if frame.kind == http2.SETTINGS and not frame.flags & http2.ACK)
    entries = [struct.unpack_from(">HI", settings.payload, at) for at in range(0, len(settings.payload), 6)]
    windows[1] = dict(entries).get(4, windows[1])
    largest_frame = 16_384
    link.send(http2.frame(http2.SETTINGS, http2.ACK))

    def push(piece: bytes, flags: int = 0) -> None:
        for at in range(0, len(piece), largest_frame):
            part = piece[at : at + largest_frame]
            while min(windows.values()) < len(part):
                frame = next(frames)
                if frame.kind == http2.WINDOW_UPDATE:
                    windows[frame.stream] += struct.unpack(">I", frame.payload)[0]
            for stream in windows:
                windows[stream] -= len(part)
            link.send(http2.frame(http2.DATA, flags, 1, part))

    push(first)
    for piece in pieces:
        push(piece, http2.END_STREAM if piece == b"\2" else 0)


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


@pytest.mark.parametrize("model", ["engine", "process"])
def test_the_largest_grpc_message_is_answered(server: ServerProcess, model: str) -> None:
    came, size = call(server, model, LARGEST)
    # The raw contents of both outputs, and the number of elements among them.
    assert b"\1\2" in came
    assert struct.pack("<q", size) in came


@pytest.mark.parametrize("kind", ["http", "grpc"])
@pytest.mark.parametrize("model", ["engine", "process"])
def test_a_region_may_be_larger_than_a_message_and_its_tensors_as_large(
    server: ServerProcess, kind: str, model: str
) -> None:
    offset = 4096
    client = RegionClient(kind, server)
    try:
        # What nobody writes of it takes no memory.
        with SharedObject(offset + LARGEST + 1) as shared:
            shared.write(b"\1", offset)
            shared.write(b"\2", offset + LARGEST - 1)
            client.register("large", shared)
            result = client.infer(model, [placed(client, LARGEST, offset)])
            assert result.as_numpy("ENDS").tolist() == [1, 2]
            assert result.as_numpy("COUNT").tolist() == [LARGEST]
            with pytest.raises(InferenceServerException, match=f"has {LARGEST + 1} bytes, but at most {LARGEST} are"):
                client.infer(model, [placed(client, LARGEST + 1, offset)])
    finally:
        client.unregister()
        client.close()


def placed(client: RegionClient, size: int, offset: int) -> Any:
    """An input in the region, of which nothing lies in this process."""
    tensor = client.module.InferInput("X", [size], "UINT8")
    tensor.set_shared_memory("large", size, offset)
    return tensor
