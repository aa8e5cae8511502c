"""The load of the tour against a server whose answers the test chooses, over real sockets."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from alipes.errors import TransportError
from alipes.loadtest import Posts
from alipes.quickstart.load import run

Answer = Callable[[int], bytes | None]
"""From the number of a request to its answer; `None` closes the connection."""

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}"


class Scripted(socketserver.ThreadingTCPServer):
    """A server for one test; counts what it gets. Its close waits for the threads of its connections."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.address = "{}:{}".format(*self.server_address)
        self.requests: list[bytes] = []
        self.connections = 0
        self._answer = answer
        self._lock = threading.Lock()

    def count(self) -> None:
        """Counts a connection."""
        with self._lock:
            self.connections += 1

    def answer(self, body: bytes) -> bytes | None:
        """Counts a request and answers it."""
        with self._lock:
            self.requests.append(body)
            return self._answer(len(self.requests))


class _Connection(socketserver.StreamRequestHandler):
    server: Scripted
    timeout = 60

    def handle(self) -> None:
        self.server.count()
        with suppress(ConnectionError):
            while (body := self._body()) is not None and (answer := self.server.answer(body)) is not None:
                # In two pieces: an answer need not arrive in one.
                self.wfile.write(answer[:20])
                self.wfile.write(answer[20:])

    def _body(self) -> bytes | None:
        length = None
        while line := self.rfile.readline().strip().lower():
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return None if length is None else self.rfile.read(length)


@contextmanager
def scripted(answer: Answer) -> Iterator[Scripted]:
    """Serves in a thread until the block ends."""
    with Scripted(answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


POSTS = Posts("/v2/models/digits/infer", [b"a", b"bb", b"ccc"])


def test_every_answer_is_counted_once_and_every_request_is_sent() -> None:
    with scripted(lambda number: OK) as server:
        result = run(server.address, POSTS, seconds=0.2, connections=4)
        assert server.connections == result.connections == 4
        assert result.window.answers == len(server.requests)
    assert result.window.failed == 0
    assert (result.window.latencies.times_ns > 0).all()
    assert set(server.requests) == {b"a", b"bb", b"ccc"}


def test_a_refusal_is_a_failure_and_the_connection_goes_on() -> None:
    with scripted(lambda number: BUSY if number % 2 else OK) as server:
        result = run(server.address, POSTS, seconds=0.2, connections=2)
        assert server.connections == 2
        assert result.window.failed + result.window.answers == len(server.requests)
        assert result.window.failed == (len(server.requests) + 1) // 2


def test_a_server_that_goes_away_ends_the_load_with_an_error() -> None:
    with scripted(lambda number: OK if number < 10 else None) as server, pytest.raises(TransportError, match="closed"):
        run(server.address, POSTS, seconds=60, connections=2)


def test_a_server_that_is_not_there_is_an_error_at_once() -> None:
    with pytest.raises(TransportError, match=r"127\.0\.0\.1:1"):
        run("127.0.0.1:1", POSTS, seconds=60)


def test_the_caller_hears_how_far_it_is() -> None:
    heard: list[float] = []

    class Enough(Exception):
        """It was heard three times."""

    def hear(elapsed_s: float) -> None:
        heard.append(elapsed_s)
        if len(heard) == 3:
            raise Enough

    with scripted(lambda number: OK) as server, pytest.raises(Enough):
        run(server.address, POSTS, seconds=3600, connections=1, tick=hear)
    assert heard == sorted(heard)
