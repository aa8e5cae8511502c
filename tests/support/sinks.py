"""A sink of events: a server that keeps what is posted to it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from support.waiting import until


@dataclass(frozen=True)
class Event:
    """What was posted.

    Attributes:
        headers: Its headers, by names in lower case.
        body: Its body.
    """

    headers: dict[str, str]
    body: bytes

    @property
    def side(self) -> str:
        """`request` or `response`."""
        return self.headers["ce-type"].rpartition(".")[2]


@dataclass
class Sink:
    """A sink that answers with a status, once it may."""

    status: int = 200
    events: list[Event] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        sink = self
        self.may_answer.set()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sink.events.append(Event({name.lower(): value for name, value in self.headers.items()}, body))
                sink.may_answer.wait()
                self.send_response(sink.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}/events?of=models"

    def take(self, count: int) -> list[Event]:
        """The next events, once so many are there. A test takes all of its own, or another would find them."""
        until(lambda: len(self.events) >= count, f"{count} events")
        found = list(self.events)
        self.events.clear()
        return found
