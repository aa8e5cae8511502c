"""A registry for one test: blobs and manifests in memory, who may ask, and faults where a test wants them.

It is no real one: `registry` is. This one hangs and refuses as it is scripted.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

Fault = Callable[[BaseHTTPRequestHandler], bool]
"""Looks at a request before it is answered; true if it has done so itself, or leaves it without an answer."""


@dataclass
class Scripted:
    """What was pushed, and how the registry behaves.

    Attributes:
        login: `Basic` or `Bearer`, if it wants to know who asks: then alice, whose password is `secret`.
        attaches: Whether it knows what is attached to an image.
        fault: What goes wrong.
    """

    login: str = ""
    attaches: bool = True
    fault: Fault = lambda _: False
    address: str = ""
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)

    def accepts(self, authorization: str) -> bool:
        """Whether somebody may ask."""
        return not self.login or authorization == (_BASIC if self.login == "Basic" else "Bearer right")


_BASIC = f"Basic {base64.b64encode(b'alice:secret').decode()}"


@contextmanager
def scripted_registry(script: Scripted) -> Iterator[Scripted]:
    """Serves until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.script = script
    script.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a request that hangs ends with the test
    script: Scripted


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        script = self.server.script
        url = urlsplit(self.path)
        script.requests.append(f"{self.command} {url.path}")
        script.authorizations.append(self.headers.get("Authorization", ""))
        if script.fault(self):
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if url.path == "/token":
            right = self.headers.get("Authorization") == _BASIC
            return self.reply(200 if right else 401, json.dumps({"token": "right"}).encode() if right else b"{}")
        if not script.accepts(self.headers.get("Authorization", "")):
            realm = f'realm="http://{script.address}/token",service="here"' if script.login == "Bearer" else 'realm="x"'
            return self.reply(401, b"{}", {"WWW-Authenticate": f"{script.login} {realm}"})
        return self._routed(url.path, parse_qs(url.query), body)

    def _routed(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        script = self.server.script
        digest = f"sha256:{sha256(body).hexdigest()}"
        last = path.rpartition("/")[2]
        match self.command, path.split("/")[-2]:
            case "GET", "v2":
                self.reply(200, b"{}")
            case "HEAD", "blobs":
                self.reply(200 if last in script.blobs else 404)
            case "POST", "uploads":
                self.reply(202, headers={"Location": "/upload?state=1"})
            case "PUT", "":
                fits = query["digest"] == [digest]
                if fits:
                    script.blobs[digest] = body
                self.reply(201 if fits else 400)
            case "PUT", "manifests":
                document = json.loads(body)
                if "subject" in document and not script.attaches:
                    return self.reply(400, b'{"errors": [{"code": "MANIFEST_INVALID", "message": "no subjects"}]}')
                script.manifests[last] = body
                attached = {"OCI-Subject": document["subject"]["digest"]} if "subject" in document else {}
                self.reply(201, headers={"Docker-Content-Digest": digest, **attached})
            case "GET", "blobs":
                self.reply(200 if last in script.blobs else 404, script.blobs.get(last, b"{}"))
            case "GET", "manifests":
                self.reply(200 if last in script.manifests else 404, script.manifests.get(last, b"{}"))
            case _:
                self.reply(404, b"{}")
        return None

    def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Sends a response."""
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing."""
