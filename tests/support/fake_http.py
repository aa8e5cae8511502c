"""A server for one test: answers each request as it is scripted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[], "tuple[int, Sequence[float]] | None"]
"""Status and numbers of the next answer; `None` closes the connection without one."""


class _Server(ThreadingHTTPServer):
    # As many as come at once: one that finds no room comes again after a second.
    request_queue_size = 128


@contextmanager
def fake_http(answer: Answer) -> Iterator[int]:
    """Serves until the block ends; gives the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            scripted = answer()
            if scripted is None:
                self.close_connection = True
                return
            status, values = scripted
            body = json.dumps({"outputs": [{"data": list(values)}]}).encode() if values else b"no"
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Logs nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
