"""Clients of HTTP/1 that send too little, too slowly or too much, or do not read."""

from __future__ import annotations

import contextlib
import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.attack import connect, links, rest
from support.server import ServerProcess
from support.steady_client import BODY, INFER

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow("waits for time-outs of connections, end to end"),
    pytest.mark.usefixtures("steady_client"),
]


# Chunks of less than a kibibyte on average that a body may come in.
MOST_CHUNKS = 65_536


def head(length: int | None, *headers: str, path: str = INFER) -> bytes:
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", framing, *headers, "", ""]).encode()


def test_a_stalled_body_is_refused_and_its_connection_ends(server: ServerProcess) -> None:
    with links(server.http, 50, head(len(BODY)) + BODY[:10].encode()) as opened:
        for link in opened:
            answer = rest(link)
            assert answer.startswith(b"HTTP/1.1 400 "), answer
            assert b"fewer than 4096 bytes came in 4 s" in answer


@pytest.mark.parametrize(
    "wire",
    [
        head(None) + b"ffffffffffffffff\r\n",
        head(None) + b"-5\r\nhello\r\n0\r\n\r\n",
        head(None) + b"5;" + b"x" * 100_000 + b"\r\nhello\r\n0\r\n\r\n",
        head(None) + b"5\r\nhello!!\r\n0\r\n\r\n",
        head(18446744073709551616),
        head(10)[:-4] + b"\r\nContent-Length: 20\r\n\r\n" + b"x" * 20,
        head(10, "Inference-Header-Content-Length: 4000000000", "Connection: close") + b"x" * 10,
        head(10, "Expect: 100-continue")[:-2],
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n" * 100_000,
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
    ],
    ids=[
        "a chunk of all there is",
        "a negative chunk",
        "a chunk with an endless extension",
        "a chunk longer than it says",
        "a length past 64 bits",
        "two lengths",
        "a header longer than the body",
        "a head without an end",
        "a version of the future",
        "empty lines",
        "an endless path",
    ],
)
def test_lengths_that_lie_end_their_own_connection_only(server: ServerProcess, wire: bytes) -> None:
    with links(server.http, 5) as opened:
        for link in opened:
            try:
                link.sendall(wire)
            except ConnectionError:
                continue
            answer = rest(link)
            assert answer == b"" or answer[:12].startswith(b"HTTP/1.1 4"), answer[:200]


def chunked(body: bytes, size: int) -> bytes:
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def test_a_body_may_have_only_so_many_chunks(server: ServerProcess) -> None:
    for chunks, status in [(MOST_CHUNKS, b"HTTP/1.1 200 "), (MOST_CHUNKS + 1, b"HTTP/1.1 400 ")]:
        with connect(server.http) as link:
            link.sendall(head(None, "Connection: close") + chunked(BODY.encode().ljust(chunks), 1))
            answer = rest(link)
            assert answer.startswith(status), answer
            assert (
                b"Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer or larger HTTP chunks."
                in answer
            ) == (chunks > MOST_CHUNKS)


def test_a_flood_of_chunks_is_cut_off(server: ServerProcess) -> None:
    with connect(server.http) as link, contextlib.suppress(ConnectionError):
        link.sendall(head(None) + b"1\r\n \r\n" * 1_000_000)
        assert rest(link).startswith(b"HTTP/1.1 400 ")


def test_a_client_that_says_nothing_at_all_is_let_go(server: ServerProcess) -> None:
    with links(server.http, 100) as opened:
        for link in opened:
            assert rest(link).startswith(b"HTTP/1.1 408 ")


def test_floods_of_headers_are_refused_by_number_and_by_size(server: ServerProcess) -> None:
    for headers in (["X-A: b"] * 101, ["X-A: b"] * 50_000, [f"X-A: {'b' * 70_000}"]):
        with connect(server.http) as link:
            try:
                link.sendall("\r\n".join(["GET /v2 HTTP/1.1", "Host: x", *headers, "", ""]).encode())
            except ConnectionError:
                continue
            answer = rest(link)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 431 "), answer


def test_as_many_headers_as_are_allowed_are_accepted(server: ServerProcess) -> None:
    with connect(server.http) as link:
        lines = ["GET /v2 HTTP/1.1", "Host: x", *(["X-A: b"] * 98), "Connection: close", "", ""]
        link.sendall("\r\n".join(lines).encode())
        assert rest(link).startswith(b"HTTP/1.1 200 ")


def test_an_unread_answer_is_thrown_away(server: ServerProcess) -> None:
    tensor = {"name": "X", "shape": [4, 1 << 18], "datatype": "FP32", "parameters": {"binary_data_size": 4 << 20}}
    document = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    length = f"Inference-Header-Content-Length: {len(document)}"
    request = head(len(document) + (4 << 20), length, path="/v2/models/wide/infer") + document + bytes(4 << 20)
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(8):
            # One after the other: a connection whose first request is late is let go.
            opened.append(stack.enter_context(connect(server.http)))
            opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            opened[-1].sendall(request)
        # The fixture waits until the server has closed all of them: they stay open on this side until then.
        _wait_until_closed(opened)


def test_many_requests_at_once_on_one_connection_are_answered_in_order(server: ServerProcess) -> None:
    count = 500
    requests = b"".join(
        f"GET /v2/models/{'double' if number % 2 else 'none'} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        for number in range(count)
    )
    with connect(server.http) as link, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(link.sendall, requests)
        stream = link.makefile("rb")
        for number in range(count):
            status = stream.readline().split()[1]
            assert status == (b"200" if number % 2 else b"404"), number
            headers = {}
            while (line := stream.readline()) != b"\r\n":
                name, _, value = line.partition(b": ")
                headers[name.lower()] = value
            stream.read(int(headers[b"content-length"]))
        sending.result()


def _wait_until_closed(opened: list[socket.socket]) -> None:
    """Until the other side has reset each: what it sent stays unread, so nothing but an error tells."""
    for link in opened:
        try:
            while True:
                link.settimeout(0.05)
                try:
                    link.sendall(b"x")
                    link.recv(1, socket.MSG_PEEK)
                except TimeoutError:
                    continue
        except ConnectionError:
            pass
