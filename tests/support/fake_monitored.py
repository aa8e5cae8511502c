"""A server whose metrics a test writes: for values that a real one cannot be made to show."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from alipes.monitor.columns import COUNT, DURATIONS

from support.waiting import TIMEOUT_S


class FakeMonitored:
    """One server that answers requests for models and for metrics. A context manager.

    Attributes:
        metrics: The page of metrics.
        status: The HTTP status of it.
        models: The versions of each model, and its configuration.
    """

    def __init__(
        self, models: Mapping[str, tuple[list[int], dict[str, Any]]], host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.metrics = ""
        self.status = 200
        self.models = models
        self._scrapes = threading.Semaphore(0)
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake._answer(self)

            def log_message(self, *_: object) -> None:
                """Logs nothing."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.server_address[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait_for_scrape(self) -> None:
        """Returns once a client has received the metrics as they are now.

        Raises:
            AssertionError: If no client requests them in time.
        """
        while self._scrapes.acquire(blocking=False):
            pass  # requests before this call
        for _ in range(2):  # the first may have been under way
            assert self._scrapes.acquire(timeout=TIMEOUT_S), "no client requests the metrics"

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        status, body = 404, b"{}"
        parts = request.path.strip("/").split("/")
        if request.path == "/metrics":
            status, body = self.status, self.metrics.encode()
        elif parts[:2] == ["v2", "models"] and parts[2] in self.models:
            versions, config = self.models[parts[2]]
            answer = config if parts[-1] == "config" else {"name": parts[2], "versions": list(map(str, versions))}
            status, body = 200, json.dumps(answer).encode()
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
        if request.path == "/metrics":
            self._scrapes.release()


def counters(model: str, count: float, microseconds: float = 0, version: int = 1) -> str:
    """The lines of a model's counters."""
    counts = {COUNT: count, **dict.fromkeys(DURATIONS.values(), microseconds)}
    return "".join(f'{name}{{version="{version}",model="{model}"}} {value:f}\n' for name, value in counts.items())
