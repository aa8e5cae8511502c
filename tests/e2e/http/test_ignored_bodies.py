"""Bodies of requests for which they say nothing: dropped, and the connection serves on or says that it ends."""

from __future__ import annotations

import http.client

import pytest
from support.attack import connect, rest
from support.server import ServerProcess

IGNORED = [
    ("GET", "/v2/health/live"),
    ("GET", "/v2/health/ready"),
    ("GET", "/v2"),
    ("GET", "/v2/models/double"),
    ("GET", "/v2/models/double/config"),
    ("GET", "/v2/models/double/ready"),
    ("GET", "/v2/models/stats"),
    ("GET", "/v2/systemsharedmemory/status"),
    ("POST", "/v2/systemsharedmemory/unregister"),
    ("POST", "/v2/health/live"),
    ("POST", "/nowhere"),
    ("POST", "/v2/models/absent/infer"),
]


@pytest.mark.parametrize(("method", "path"), IGNORED)
def test_the_connection_serves_on(server: ServerProcess, method: str, path: str) -> None:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    try:
        opened = None
        for _ in range(3):
            connection.request(method, path, b"x" * 300_000)
            connection.getresponse().read()
            opened = opened or connection.sock
            assert connection.sock is opened, "the same connection"
    finally:
        connection.close()


@pytest.mark.parametrize(("method", "path"), IGNORED)
def test_an_answer_to_a_body_too_long_to_drop_says_close(server: ServerProcess, method: str, path: str) -> None:
    with connect(server.http) as link:
        link.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 30}\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += link.recv(1 << 16)
        assert b"\r\nconnection: close\r\n" in answer.lower(), answer
        link.shutdown(1)
        rest(link)
