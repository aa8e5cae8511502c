"""Requests that are heavy to receive, to read or to answer, over HTTP/1, HTTP/2 and gRPC."""

from __future__ import annotations

import contextlib
import http.client
import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import grpc
import numpy as np
from tritonclient.grpc import service_pb2

from support.http2 import ACK, DATA, END_STREAM, HEADERS, SETTINGS, WINDOW_UPDATE, Connection, frame, request

TIMEOUT_S: Final = 60.0

INFER: Final = "/inference.GRPCInferenceService/ModelInfer"
STREAM: Final = "/inference.GRPCInferenceService/ModelStreamInfer"
REFLECTION: Final = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"

UNLIMITED: Final = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]

# Of a body that is sent without a length.
_PIECE_BYTES: Final = 1 << 14
_SETTINGS_WINDOW: Final = 4
_LARGEST_WINDOW: Final = (1 << 31) - 1

Body = bytes | Iterable[bytes]


def ask(
    address: str, path: str, body: Body | None = None, headers: Mapping[str, str] | None = None, method: str = "POST"
) -> tuple[int, bytes]:
    """Status and body of the answer; a body that is no bytes is sent in chunks. A refusal may come before its end."""
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, body, dict(headers or {}), encode_chunked=not isinstance(body, bytes))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def get(address: str, path: str) -> bytes:
    """The body of an answer.

    Raises:
        AssertionError: If it is a refusal.
    """
    status, text = ask(address, path, method="GET")
    assert status == 200, text
    return text


def pieces(body: bytes) -> Iterator[bytes]:
    """A body without its length."""
    return (body[at : at + _PIECE_BYTES] for at in range(0, len(body), _PIECE_BYTES))


def gzipped(body: bytes) -> bytes:
    """A body as a client sends it that cares for its own time."""
    compressor = zlib.compressobj(1, wbits=31)
    return compressor.compress(body) + compressor.flush()


def json_tensor(elements: Iterable[str], count: int, datatype: str = "FP32", more: str = "") -> bytes:
    """A request with one row of elements, which are JSON already."""
    data = ",".join(elements)
    head = f'{{"inputs": [{{"name": "X", "datatype": "{datatype}", "shape": [1, {count}], "data": ['
    return f"{head}{data}]}}]{more}}}".encode()


def binary_tensor(
    data: bytes, shape: list[int], datatype: str = "FP32", **parameters: Any
) -> tuple[list[bytes], dict[str, str]]:
    """The pieces of a body with one tensor in binary, and its headers; the answer is binary too."""
    tensor = {"name": "X", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": len(data)}}
    document: dict[str, object] = {"inputs": [tensor], "parameters": {"binary_data_output": True}} | parameters
    head = json.dumps(document).encode()
    return [head, data], {"Inference-Header-Content-Length": str(len(head))}


def message(
    model: str, data: bytes | None, shape: list[int], datatype: str = "FP32", **contents: Any
) -> service_pb2.ModelInferRequest:
    """An inference over gRPC, with a raw tensor or typed contents."""
    made = service_pb2.ModelInferRequest(model_name=model)
    tensor = made.inputs.add(name="X", datatype=datatype, shape=shape)
    if data is None:
        tensor.contents.MergeFrom(service_pb2.InferTensorContents(**contents))
    else:
        made.raw_input_contents.append(data)
    return made


def call(address: str, method: str, wire: bytes, compression: grpc.Compression | None = None) -> bytes:
    """The answer to a call of one message, or the words of its refusal."""
    with grpc.insecure_channel(address, options=UNLIMITED) as channel:
        try:
            return bytes(channel.unary_unary(method)(wire, timeout=TIMEOUT_S, compression=compression))
        except grpc.RpcError as error:
            return str(error.details()).encode()


def stream(address: str, method: str, wires: Iterable[bytes]) -> int:
    """The number of answers on a stream, which may end with a refusal."""
    with grpc.insecure_channel(address, options=UNLIMITED) as channel:
        answers = channel.stream_stream(method)(iter(list(wires)), timeout=TIMEOUT_S)
        count = 0
        with contextlib.suppress(grpc.RpcError):
            for _ in answers:
                count += 1
        return count


def upload(address: str, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> int:
    """Sends a body over HTTP/2 without saying its length, as far as the windows allow; the bytes of the answer."""
    window = struct.pack(">HI", _SETTINGS_WINDOW, _LARGEST_WINDOW)
    with Connection(address, settings=window) as connection:
        connection.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", _LARGEST_WINDOW - 65_535)))
        found = connection.next(SETTINGS)
        connection.send(frame(SETTINGS, ACK), request(1, "POST", path, headers, end=False))
        settings = dict(struct.iter_unpack(">HI", found.payload))
        credit = {0: 65_535, 1: settings.get(_SETTINGS_WINDOW, 65_535)}
        at = 0
        while at < len(body):
            length = min(_PIECE_BYTES, len(body) - at, *credit.values())
            if length > 0:
                end = END_STREAM if at + length == len(body) else 0
                connection.send(frame(DATA, end, 1, body[at : at + length]))
                at += length
                credit = {stream: left - length for stream, left in credit.items()}
                continue
            found = next(connection.frames())
            assert found.kind != HEADERS, "it was answered before its end"
            if found.kind == WINDOW_UPDATE:
                credit[found.stream] += struct.unpack(">I", found.payload)[0]
        received = 0
        for found in connection.frames():
            received += len(found.payload) if found.kind == DATA else 0
            if found.kind in (DATA, HEADERS) and found.flags & END_STREAM:
                break
        return received


def ones(count: int, times: float = 1) -> bytes:
    """So many FP32 of 1.0, times a number."""
    return np.full(count, times, np.float32).tobytes()
