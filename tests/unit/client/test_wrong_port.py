"""What a look at an address says of who answers there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from alipes.client import InferenceClient
from alipes.client.tls import Tls
from alipes.client.wrong_port import advice, spoken_at
from alipes.errors import Unsupported

METRICS = (200, "text/plain; charset=utf-8", b"")


@contextmanager
def somebody(status: int, content_type: str, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Somebody who answers every path alike; gives the address, and the hosts that were asked for."""
    hosts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hosts.append(self.headers["Host"])
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", hosts
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("answer", "spoken"),
    [
        (METRICS, "other"),
        ((404, "text/plain; version=0.0.4; charset=utf-8", b"# no"), "other"),
        ((200, "application/openmetrics-text; version=1.0.0", b"# EOF"), "other"),
        ((200, "application/json", b"{}"), "http"),
        # A proxy's own pages tell nothing of the server behind it.
        ((404, "text/html", b"<h1>no</h1>"), None),
        ((403, "text/plain; charset=utf-8", b""), None),
        ((200, "text/plain; charset=utf-8", b"welcome"), None),
    ],
)
def test_only_metrics_are_called_no_inference_server(answer: tuple[int, str, bytes], spoken: str | None) -> None:
    with somebody(*answer) as (address, hosts):
        assert spoken_at(address) == spoken
        assert hosts == [address]


def test_nobody_looks_at_a_path_or_at_an_encrypted_address() -> None:
    with somebody(*METRICS) as (address, hosts):
        assert advice(f"http://{address}/models", "http") is None
        assert advice(f"https://{address}", "http") is None
        assert advice(address, "grpc", Tls()) is None
        assert hosts == []
        assert "such as its metrics" in str(advice(f"http://{address}", "http"))


def test_an_inference_client_keeps_the_class_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from alipes.client.inference.transport import GrpcEndpoint

    class Calls:
        def is_live(self) -> bool:
            raise Unsupported("404")

        def close(self) -> None:
            """Has nothing open."""

    monkeypatch.setattr(GrpcEndpoint, "calls", lambda _: Calls())
    with somebody(*METRICS) as (address, _):
        with pytest.raises(Unsupported, match=r": 404; the server at .* is no inference server"):
            InferenceClient(address, "m")
        with pytest.raises(Unsupported, match=r": 404$"):
            InferenceClient(address, "m", tls=Tls())
