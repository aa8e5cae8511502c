"""The load of the tour against a server whose answers the test chooses, over real sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from alipes.errors import TransportError
from alipes.loadtest import Posts
from alipes.quickstart.load import run

Answer = Callable[[int], bytes | None]
"""From the number of a request to its answer; `None` closes the connection."""

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}"


class Scripted:
    """A server for one test; counts what it gets."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.address = ""
        self._answer = answer

    async def serve(self, started: Callable[[asyncio.Event], None]) -> None:
        end = asyncio.Event()
        async with await asyncio.start_server(self._connection, "127.0.0.1", 0) as server:
            self.address = "{}:{}".format(*server.sockets[0].getsockname()[:2])
            started(end)
            await end.wait()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                body = await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
                self.requests.append(body)
                answer = self._answer(len(self.requests))
                if answer is None:
                    break
                # In two pieces: an answer need not arrive in one.
                writer.write(answer[:20])
                await writer.drain()
                await asyncio.sleep(0)
                writer.write(answer[20:])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:  # also where the test ends with the connection open
            writer.close()


@contextmanager
def scripted(answer: Answer) -> Iterator[Scripted]:
    """Serves in a thread until the block ends."""
    server = Scripted(answer)
    ready = threading.Event()
    stop: list[Callable[[], None]] = []

    def started(end: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(end.set))
        ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(server.serve(started)))
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        stop[0]()
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
