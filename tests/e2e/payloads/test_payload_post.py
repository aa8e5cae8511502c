"""Events are posted over one connection, to servers of all manners."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from alipes.server.payloads.post import BadAnswer, Poster
from support.certificates import Authority
from support.waiting import TIMEOUT_S

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


class Scripted:
    """A server that sends fixed answers, one for each request, and closes a connection behind an empty one."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.answers: list[bytes] = []
        self.requests: list[bytes] = []
        self.connections = 0
        self.closed = threading.Semaphore(0)
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.settimeout(TIMEOUT_S)
                self.connections += 1
                with suppress(OSError), ExitStack() as stack:
                    stack.enter_context(connection)
                    if self._context is not None:
                        connection = self._context.wrap_socket(connection, server_side=True)
                        stack.enter_context(connection)
                    self._serve(connection)
                self.closed.release()

    def _serve(self, connection: socket.socket) -> None:
        while self.answers:
            request = b""
            while not request.endswith(b"end"):
                part = connection.recv(1 << 16)
                if not part:
                    return
                request += part
            self.requests.append(request)
            if not (answer := self.answers.pop(0)):
                return
            connection.sendall(answer)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(TIMEOUT_S)


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    server = Scripted()
    yield server
    server.close()


@pytest.fixture
def poster(scripted: Scripted) -> Iterator[Poster]:
    made = Poster(f"http://127.0.0.1:{scripted.port}/log?team=a", TIMEOUT_S)
    yield made
    made.close()


def test_a_request_has_its_headers_and_its_length(scripted: Scripted, poster: Poster) -> None:
    scripted.answers = [NO_CONTENT]
    assert poster.post({"ce-id": "7", "content-type": "application/json"}, b"the end") == (204, "No Content")
    head, _, body = scripted.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert (lines[0], body) == ("POST /log?team=a HTTP/1.1", b"the end")
    assert {f"host: 127.0.0.1:{scripted.port}", "ce-id: 7", "content-length: 7"} <= set(lines)


@pytest.mark.parametrize(
    ("answer", "status", "connections"),
    [
        (NO_CONTENT, 204, 1),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntaken", 200, 1),
        (b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ntaken\r\n0\r\n\r\n", 202, 1),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 No Room\r\ncontent-length: 0\r\n\r\n", 500, 1),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\ntaken", 200, 2),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 200, 2),
        (b"HTTP/1.1 200 OK\r\n\r\n", 200, 2),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100, 200, 2),
    ],
)
def test_a_connection_serves_as_long_as_its_answers_end(
    scripted: Scripted, poster: Poster, answer: bytes, status: int, connections: int
) -> None:
    scripted.answers = [answer, NO_CONTENT]
    assert poster.post({}, b"end")[0] == status
    assert poster.post({}, b"end")[0] == 204
    assert scripted.connections == connections


def test_a_connection_that_was_closed_meanwhile_costs_no_event(scripted: Scripted, poster: Poster) -> None:
    scripted.answers = [NO_CONTENT]
    assert poster.post({}, b"end")[0] == 204
    assert scripted.closed.acquire(timeout=TIMEOUT_S)  # it has no more answers, and closes
    scripted.answers = [NO_CONTENT]
    assert poster.post({}, b"end")[0] == 204
    assert scripted.connections == 2


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"", "closed the connection without an answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "none of HTTP"),
        (b"HTTP/1.1 2x4 Odd\r\n\r\n", "none of HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, "no end of its headers"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "closed the connection without"),
    ],
)
def test_what_is_no_answer_fails_and_the_next_event_goes_on(
    scripted: Scripted, poster: Poster, answer: bytes, text: str
) -> None:
    scripted.answers = [answer]
    with pytest.raises(BadAnswer, match=text):
        poster.post({}, b"end")
    scripted.answers = [NO_CONTENT]
    assert poster.post({}, b"end")[0] == 204


def test_a_header_with_a_line_break_is_never_sent(scripted: Scripted, poster: Poster) -> None:
    with pytest.raises(ValueError, match="line break"):
        poster.post({"content-type": "a\r\nx-evil: 1"}, b"end")
    assert scripted.requests == []


def test_a_sink_behind_tls_is_trusted_by_its_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    files = authority.files("sink")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    (tmp_path / "root.pem").write_bytes(authority.root_pem)
    server = Scripted(context)
    url = f"https://127.0.0.1:{server.port}/"
    try:
        server.answers = [NO_CONTENT] * 2
        with pytest.raises(ssl.SSLCertVerificationError):
            Poster(url, TIMEOUT_S).post({}, b"end")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "root.pem"))
        trusted = Poster(url, TIMEOUT_S)
        assert [trusted.post({}, b"end")[0] for _ in range(2)] == [204, 204]
        assert server.connections == 2  # the first one was not trusted
        trusted.close()
    finally:
        server.close()
