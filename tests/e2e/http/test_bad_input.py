"""Bad requests get one clear error each and cost no other request anything."""

from __future__ import annotations

import http.client
import json
import socket
import struct

import grpc
import numpy as np
import psutil
import pytest
from support.attack import connect, rest
from support.double import INFER, assert_serves, document, post
from support.server import ServerProcess

BAD_BODIES = {
    "no JSON": (b"hello", 500, "failed to parse the request JSON buffer: Invalid value. at 0"),
    "half a document": (b'{"inputs":[', 500, "failed to parse the request JSON buffer"),
    "binary noise": (bytes(range(256)), 500, "failed to parse the request JSON buffer"),
    "nested past the limit": (
        b'{"inputs":' + b"[" * 100_000,
        400,
        "JSON nesting depth exceeds maximum allowed limit (100)",
    ),
    "an unknown input": (document(name="Q"), 400, "unexpected inference input 'Q' for model 'double'"),
    "no input": (b'{"inputs":[]}', 400, "expected 1 inputs but got 0 inputs for model 'double'"),
    "a wrong shape": (document(shape=[1, 3], data=[1, 2, 3]), 400, "unexpected shape for input 'X' for model 'double'"),
    "a wrong datatype": (document(datatype="INT32"), 400, "data-type is 'INT32', but model 'double' expects 'FP32'"),
    "an unknown datatype": (document(datatype="FLOAT"), 400, "invalid datatype for input X"),
    "too few values": (document(data=[1]), 500, "hape does not match true shape"),
    "too many values": (document(data=[1, 2, 3]), 500, "hape does not match true shape"),
    "a negative size": (document(shape=[-1, 2]), 500, "Unable to parse 'shape'"),
    "a shape past 64 bits": (document(shape=[1 << 40, 1 << 40]), 400, "exceed"),
    "a shape of a terabyte": (document(shape=[1, 1 << 38]), 400, "(1099511627776 bytes) that exceeds the maximum"),
    "a batch too large": (document(shape=[9, 2], data=[1] * 18), 400, "batch-size must be <= 4"),
    "a number too large": (document(data=["1e999"]).replace(b'"1e999"', b"1e999"), 500, "Number too big"),
}


@pytest.mark.parametrize("case", BAD_BODIES)
def test_a_bad_body_gets_one_clear_error_and_the_connection_serves_on(
    connection: http.client.HTTPConnection, case: str
) -> None:
    body, expected_status, expected_text = BAD_BODIES[case]
    status, text = post(connection, body)
    assert (status, expected_text in json.loads(text)["error"]) == (expected_status, True), text
    assert_serves(connection)


PLACES = {
    "no JSON": (b'{"inputs":\n [}', "; line 2, column 3: expected a value (text stands in double quotes), found }"),
    "too few values": (document(data=[1]), "; input 'X' (inputs[0]): shape [1,2] needs 2 elements, data has 1"),
    "too many values": (document(data=[1, 2, 3]), "; input 'X' (inputs[0]): shape [1,2] needs 2 elements, data has 3"),
    "a text among numbers": (
        document(data=[1, "2"]),
        "; input 'X' (inputs[0]): value 1 of its data, counted from 0, is \"2\", expected a number",
    ),
    "an unknown input": (document(name="Q"), "; it takes 'X'"),
    "plain values": (b'{"X": [1, 2]}', '; plain values, as in {"X": 1}, are for .../generate'),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_refusal_says_where_the_body_is_wrong(connection: http.client.HTTPConnection, case: str) -> None:
    body, place = PLACES[case]
    _, text = post(connection, body)
    assert json.loads(text)["error"].endswith(place)


def binary(header: dict[str, object], tail: bytes) -> tuple[bytes, str]:
    head = json.dumps(header).encode()
    return head + tail, str(len(head))


@pytest.mark.parametrize(
    ("announced", "tail", "expected"),
    [
        (8, b"\0" * 4, "expecting 4 additional bytes for model 'double'"),
        (8, b"\0" * 12, "unexpected additional input data for model 'double'"),
        (4, b"\0" * 4, "input byte size mismatch for input 'X' for model 'double'. Expected 8, got 4"),
        (1 << 62, b"\0" * 8, "additional bytes for model 'double'"),
    ],
)
def test_a_buffer_of_another_length_is_refused(
    connection: http.client.HTTPConnection, announced: int, tail: bytes, expected: str
) -> None:
    tensor = {"name": "X", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": announced}}
    body, length = binary({"inputs": [tensor]}, tail)
    status, text = post(connection, body, Inference_Header_Content_Length=length)
    assert (status, expected in text) == (400, True), text
    assert_serves(connection)


def test_a_header_length_beyond_the_body_is_refused(connection: http.client.HTTPConnection) -> None:
    status, text = post(connection, b"{}", Inference_Header_Content_Length="100000")
    assert (status, json.loads(text)["error"]) == (400, "inference header size should be in range (0, 2), got: 100000")
    assert_serves(connection)


def raw(server: ServerProcess, wire: bytes) -> bytes:
    host, port = server.http.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as link:
        link.sendall(wire)
        link.shutdown(socket.SHUT_WR)
        return link.makefile("rb").read()


@pytest.mark.parametrize(
    "wire",
    [
        b"\0\1\2\3\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\nHost: x\r\n" + b"X-Long: " + b"a" * (2 << 20) + b"\r\n\r\n",
    ],
    ids=["noise", "half a line", "a negative length", "a header of two megabytes"],
)
def test_what_is_no_http_ends_its_own_connection_only(
    server: ServerProcess, connection: http.client.HTTPConnection, wire: bytes
) -> None:
    try:
        answer = raw(server, wire)
    except OSError:
        answer = b""  # closed while we were still sending
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431")), answer[:200]
    assert_serves(connection)


def test_a_body_that_never_ends_holds_no_memory_and_no_model(
    server: ServerProcess, connection: http.client.HTTPConnection
) -> None:
    host, port = server.http.rsplit(":", 1)
    process = psutil.Process(server.process.pid)
    assert_serves(connection)
    before = process.memory_info().rss
    links = [socket.create_connection((host, int(port)), timeout=30) for _ in range(50)]
    try:
        for link in links:
            announced = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n"
            link.sendall(announced.encode() + b'{"inputs":[' * 100)
        assert_serves(connection)
        # Fifty announced bodies of 60 MB, 3 GB, of which 55 kB were sent. For each a megabyte is allocated, which may
        # be resident where the system uses huge pages.
        assert process.memory_info().rss - before < 100 << 20
    finally:
        for link in links:
            link.close()
    assert_serves(connection)


def test_an_announced_body_past_the_limit_is_refused_before_it_is_sent(server: ServerProcess) -> None:
    host, port = server.http.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as link:
        link.sendall(f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n".encode())
        head = link.makefile("rb").readline()
    assert head.startswith(b"HTTP/1.1 400"), head


@pytest.mark.parametrize("path", ["/v2/models/absent/infer", "/v2/models/double/versions/7/infer"])
def test_a_refusal_is_read_even_by_who_is_still_sending(connection: http.client.HTTPConnection, path: str) -> None:
    connection.request("POST", path, b" " * 5_000_000)
    answer = connection.getresponse()
    assert (answer.status, "is not found" in answer.read().decode()) == (404, True)
    assert_serves(connection)


@pytest.mark.parametrize("message", [b"\xff\xff\xff", b"", struct.pack(">I", 7) * 9], ids=["noise", "empty", "numbers"])
def test_a_message_that_is_none_ends_its_own_call_only(server: ServerProcess, message: bytes) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        with pytest.raises(grpc.RpcError) as raised:
            call(message, timeout=30)
        assert raised.value.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.NOT_FOUND)
        live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
        assert live(b"", timeout=30) == b"\x08\x01"


def test_a_caller_who_leaves_is_counted_once(server: ServerProcess, connection: http.client.HTTPConnection) -> None:
    host, port = server.http.rsplit(":", 1)
    body = document()
    head = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(200):
        with socket.create_connection((host, int(port)), timeout=30) as link:
            link.sendall(head + body)
    assert_serves(connection)


def test_absurd_numbers_are_numbers(connection: http.client.HTTPConnection) -> None:
    values = np.array([3.4028234663852886e38, -1e-45], np.float64)
    status, text = post(connection, document(data=values.tolist()))
    assert status == 200, text
    assert "Infinity" in text


@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ([], 400, "exactly one Host header"),
        (["Host: a", "Host: b"], 400, "exactly one Host header"),
        (["Host: a", "Transfer-Encoding: gzip, chunked"], 501, "the only transfer coding is 'chunked'"),
        (["Host: a", "Transfer-Encoding: gzip", "Transfer-Encoding: chunked"], 501, "the only transfer coding"),
    ],
)
def test_a_head_that_others_read_otherwise_ends_its_connection(
    server: ServerProcess, connection: http.client.HTTPConnection, headers: list[str], status: int, text: str
) -> None:
    body = "5\r\nhello\r\n0\r\n\r\n" if "Transfer-Encoding" in str(headers) else ""
    with connect(server.http) as link:
        link.sendall("\r\n".join(["GET /v2/health/live HTTP/1.1", *headers, "", body]).encode())
        answer = rest(link).decode()
    assert answer.startswith(f"HTTP/1.1 {status} "), answer
    assert text in answer
    assert "\r\nconnection: close\r\n" in answer
    assert_serves(connection)
