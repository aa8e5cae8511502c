"""Requests that are large, of unknown length, or made of very many small things."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterable, Iterator

import grpc
import psutil
import pytest
from support.attack import connect, links, rest
from support.server import ServerProcess
from support.steady_client import INFER
from tritonclient.grpc import service_pb2

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow("sends requests of many megabytes"),
    pytest.mark.usefixtures("steady_client"),
]

INFER_CALL = "/inference.GRPCInferenceService/ModelInfer"
UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
# Numbers of the row of model `wide`.
WIDE = 1 << 18


def refusal(server: ServerProcess, message: bytes) -> str:
    """What a gRPC client is told of an inference that is refused."""
    with grpc.insecure_channel(server.grpc, options=UNLIMITED) as channel:
        call = channel.unary_unary(INFER_CALL)
        with pytest.raises(grpc.RpcError) as caught:
            call(message, timeout=60)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    return str(caught.value.details())


@pytest.mark.parametrize("field", [b"\x2a\x00", b"\x32\x00", b"\x78\x00"], ids=["inputs", "outputs", "unknown fields"])
def test_millions_of_empty_fields_are_refused_by_their_number(server: ServerProcess, field: bytes) -> None:
    for _ in range(10):
        assert "has more than 131072 fields" in refusal(server, b"\x0a\x06double" + field * 3_000_000)


def test_millions_of_short_strings_are_an_honest_tensor(server: ServerProcess) -> None:
    contents = service_pb2.InferTensorContents(bytes_contents=[b""] * 2_000_000)
    tensor = service_pb2.ModelInferRequest.InferInputTensor(
        name="X", datatype="BYTES", shape=[1, 2_000_000], contents=contents
    )
    message = service_pb2.ModelInferRequest(model_name="double", inputs=[tensor]).SerializeToString()
    for _ in range(3):
        assert "inference input 'X' data-type is 'BYTES'" in refusal(server, message)


def post(server: ServerProcess, body: Iterable[bytes] | bytes, *headers: str, path: str = INFER) -> bytes:
    """The answer to a body, which is sent in chunks where it comes in pieces."""
    framing = f"Content-Length: {len(body)}" if isinstance(body, bytes) else "Transfer-Encoding: chunked"
    head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", framing, "Connection: close", *headers, "", ""])
    with connect(server.http) as link:
        with contextlib.suppress(ConnectionError):
            link.sendall(head.encode())
            for piece in [body] if isinstance(body, bytes) else chunks(body):
                link.sendall(piece)
        return rest(link)


def chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


@pytest.mark.parametrize("place", ["parameters", "inputs", "outputs"])
def test_millions_of_entries_in_json_are_refused_by_their_number(server: ServerProcess, place: str) -> None:
    tensor = {"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    document: dict[str, object] = {"inputs": [tensor]}
    if place == "parameters":
        document[place] = {f"{number}": 1 for number in range(1_000_000)}
    else:
        document[place] = [tensor] * 200_000
    answer = post(server, json.dumps(document).encode())
    assert b"HTTP/1.1 400 " in answer
    assert f"the request has more than 16384 {place}".encode() in answer


@pytest.mark.parametrize("known", [True, False], ids=["a length", "chunks"])
def test_a_large_body_of_any_framing_is_answered(server: ServerProcess, known: bool) -> None:
    numbers = ", ".join(["1"] * WIDE * 4)
    body = f'{{"inputs": [{{"name": "X", "datatype": "FP32", "shape": [4, {WIDE}], "data": [{numbers}]}}]}}'.encode()
    pieces = body if known else [body[at : at + (1 << 14)] for at in range(0, len(body), 1 << 14)]
    for _ in range(3):
        document = json.loads(post(server, pieces, path="/v2/models/wide/infer").partition(b"\r\n\r\n")[2])
        assert document["outputs"][0]["data"] == [2.0] * WIDE * 4


def test_bodies_of_which_one_byte_has_come_take_next_to_nothing(server: ServerProcess) -> None:
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    head = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 40000000\r\n\r\n"
    prefix = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + struct.pack(">I", 0)[1:] + b"\x04\x00" + bytes(4)
    with links(server.http, 300, head.encode() + b"{"), links(server.grpc, 10, prefix):
        post(server, b"{}")  # what was sent before it has been read
        assert process.memory_info().rss - before < 300 * (48 << 10)
