"""Services that the steps of a graph call: each answers as it is scripted, and notes what came."""

from __future__ import annotations

import json
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from support.waiting import TIMEOUT_S

Scripted = tuple[int, bytes]
"""A status and a body."""


@dataclass(frozen=True)
class Received:
    """One request.

    Attributes:
        path: Its path.
        headers: Its headers, by names in lower case.
        body: Its body.
        connection: The port of the client.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int


def echo(received: Received) -> Scripted:
    """The body, as it came."""
    return 200, received.body


@dataclass
class Steps:
    """A server with a service at each path; one without a script echoes the body.

    Attributes:
        scripts: What answers at each path: None breaks off.
        received: Every request, in order.
        encryption: What encrypts the connections; None where they are plain.
    """

    scripts: dict[str, Callable[[Received], Scripted | None]] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    encryption: ssl.SSLContext | None = None

    def __enter__(self) -> Self:
        steps = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                received = Received(self.path, headers, body, self.client_address[1])
                steps.received.append(received)
                answer = steps.scripts.get(self.path, echo)(received)
                if answer is None:
                    self.close_connection = True
                    return
                status, content = answer
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                return

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                if not isinstance(
                    sys.exc_info()[1], ConnectionError | ssl.SSLError
                ):  # a caller may leave before its answer
                    super().handle_error(request, client_address)

        self._server = Server(("127.0.0.1", 0), Handler)
        if self.encryption is not None:
            self._server.socket = self.encryption.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, path: str = "/echo") -> str:
        """The address of a service."""
        scheme = "http" if self.encryption is None else "https"
        return f"{scheme}://127.0.0.1:{self._server.server_port}{path}"

    def says(self, path: str, status: int, content: object) -> str:
        """The address of a service that always answers so."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.scripts[path] = lambda _: (status, body)
        return self.url(path)

    def bodies(self, path: str) -> list[bytes]:
        """What was sent to a service."""
        return [received.body for received in self.received if received.path == path]


def node(kind: str, *steps: Mapping[str, Any]) -> dict[str, Any]:
    """A node of a graph."""
    return {"routerType": kind, "steps": list(steps)}


def write_graph(folder: Path, nodes: Mapping[str, Any], **spec: Any) -> Path:
    """The file of a graph of these nodes."""
    file = folder / "graph.json"
    document = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "InferenceGraph",
        "metadata": {"name": "flowers"},
        "spec": {"nodes": nodes, **spec},
    }
    file.write_text(json.dumps(document))
    return file


def post_graph(
    address: str, body: bytes | Mapping[str, Any], path: str = "/", headers: Mapping[str, str] | None = None
) -> tuple[int, str, bytes]:
    """The status, the content type and the body of the answer to a request."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request(
        f"http://{address}{path}", data, {"Content-Type": "application/json", **(headers or {})}, method="POST"
    )
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            return answer.status, answer.headers.get("Content-Type", ""), answer.read()
    except HTTPError as error:
        with error:
            return error.code, error.headers.get("Content-Type", ""), error.read()


def get_document(address: str, path: str) -> tuple[int, Any]:
    """The status and the document of the answer to a request without a body."""
    try:
        with urlopen(f"http://{address}{path}", timeout=TIMEOUT_S) as answer:
            status, body = answer.status, answer.read()
    except HTTPError as error:
        with error:
            status, body = error.code, error.read()
    return status, json.loads(body) if body else None
