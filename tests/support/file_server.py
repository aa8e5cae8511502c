"""A web server with files for downloads: ranges, entity tags, digests, and on request its bad habits."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["FileServer", "file_server"]


@dataclass
class FileServer:
    """What it has, how it behaves, and what it was asked.

    Attributes:
        address: `http://127.0.0.1:PORT`, or with another address of the machine.
        files: Contents by their paths.
        headers: Further headers of every answer.
        breaks_after: Bytes of each answer after which the connection breaks; None for none.
        redirects: Where requests of a path are sent.
        failing: Statuses of the next answers.
        requests: Each request as its path and its headers.
        has_tags: Whether answers have entity tags.
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    breaks_after: int | None = None
    redirects: dict[str, str] = field(default_factory=dict)
    failing: list[int] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    has_tags: bool = True

    def answer(self, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body for a request."""
        self.requests.append((path, headers))
        plain = path.partition("?")[0]
        if self.failing:
            return self.failing.pop(0), {}, b""
        if plain in self.redirects:
            return 302, {"Location": self.redirects[plain]}, b""
        if plain not in self.files:
            return 404, {}, b"there is no such file"
        content = self.files[plain]
        tag = f'"{sha256(content).hexdigest()}"'
        found = ({"ETag": tag} if self.has_tags else {}) | self.headers
        match = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
        if match is None or headers.get("if-range", tag) != tag:
            return 200, found, content
        first = int(match[1])
        if first >= len(content):
            return 416, {"Content-Range": f"bytes */{len(content)}"}, b""
        found["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
        return 206, found, content[first:]


@contextmanager
def file_server(
    encrypted: ssl.SSLContext | None = None, host: str = "127.0.0.1", **files: bytes
) -> Iterator[FileServer]:
    """Serves until the block ends, over HTTPS where a context is given, at an address of the machine."""
    state = FileServer(files={f"/{name}": content for name, content in files.items()})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ssl.SSLError, ConnectionError):  # a client that does not trust the certificate, or left
                super().handle()

        def do_GET(self) -> None:
            status, headers, body = state.answer(self.path, {name.lower(): text for name, text in self.headers.items()})
            self.send_response(status)
            for name, text in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(name, text)
            self.end_headers()
            part = body[: state.breaks_after] if status in (200, 206) else body
            try:
                self.wfile.write(b"" if self.command == "HEAD" else part)
            except ConnectionError:  # whoever only looks goes away
                self.close_connection = True
            self.close_connection |= len(part) < int(headers.get("Content-Length", len(body)))

        do_HEAD = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer((host, 0), Handler)
    if encrypted is not None:
        # Handshakes belong to the threads of connections: one that fails must not end the loop.
        server.socket = encrypted.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    state.address = f"{'http' if encrypted is None else 'https'}://{host}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
