"""What the log of a server says of its start."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from alipes.errors import ServeError
from alipes.serve.endpoints import Endpoints, ServerEndpoint
from alipes.serve.instance import Instance
from alipes.serve.readiness import _failed, announces, in_use, look, tail
from support.certificates import Authority

STARTED = "\n".join(
    f'I1122 00:25:58.992666 1 server.py:195] "Started {service} at 127.0.0.1:1"'
    for service in ("GRPCInferenceService", "HTTPService", "Metrics Service")
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


def test_endpoints_are_open_once_the_log_announces_each(log: Path) -> None:
    assert not announces(log, ["http"])
    log.write_text(STARTED.partition("\n")[0])
    assert announces(log, ["grpc"])
    assert not announces(log, ["grpc", "http"])
    log.write_text(STARTED)
    assert announces(log, ["grpc", "http", "metrics"])


def test_a_port_in_use_is_read_from_the_end_of_the_log(log: Path) -> None:
    assert not in_use(log)
    log.write_text("error: Socket '0.0.0.0:8001' already in use \n")
    assert in_use(log)
    log.write_text("model says: already in use\n" + "a line\n" * 5)
    assert not in_use(log)


def test_the_end_of_a_long_log_is_what_is_shown(log: Path) -> None:
    assert tail(log) == ""
    log.write_text("".join(f"{number}\n" for number in range(100_000)))
    assert tail(log).splitlines()[-1] == "99999"
    assert len(tail(log).splitlines()) == 40


def test_an_unused_port_has_no_live_server() -> None:
    assert not look("127.0.0.1:1").live
    assert not look("127.0.0.1:1", encrypted=True).live


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/v2/health/ready" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_an_encrypted_server_is_looked_at_whatever_its_certificate(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Ready) as server:
        server.socket = Authority(tmp_path).server_context().wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"127.0.0.1:{server.server_port}"
            assert look(address, encrypted=True).ready
            assert not look(address).live
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("version", "reason", "told"),
    [
        (
            "",
            "at least one version must be available under the version policy of model 'm'",
            "m has no version: export",
        ),
        ("", "Could not determine backend for model 'm' with no backend", "m has no version, nor a platform: export"),
        ("2", "Internal: failed to stat file m/2/model.onnx", "m version 2 has no model file: export something to it"),
        ("2", "Internal: it is no ONNX", "m version 2: Internal: it is no ONNX"),
    ],
)
def test_a_model_to_which_nothing_was_exported_is_named(version: str, reason: str, told: str) -> None:
    index = [{"name": "m", "version": version, "state": "UNAVAILABLE", "reason": reason}]
    [text] = _failed(index)
    assert text.startswith(told)
    assert reason in text


class Ends:
    """A server that nobody can reach, and that ends after it was looked for some times."""

    pid = 1

    def __init__(self, looks: int) -> None:
        self.ports: set[int] = set()
        self.endpoints: Endpoints = {"http": ServerEndpoint("127.0.0.1", 1, 1, fixed=True)}
        self.pauses: list[float] = []
        self._looks = looks

    def how(self) -> str | None:
        return "it ended" if len(self.pauses) == self._looks else None

    def wait_for_end(self, timeout_s: float) -> bool:
        self.pauses.append(timeout_s)
        return False

    def stop(self) -> None:
        """Nothing runs."""


def test_between_two_looks_at_a_server_there_is_a_pause_that_grows(log: Path) -> None:
    source = Ends(12)
    with pytest.raises(ServeError, match="it ended"):
        Instance("s", source, log, announced=()).wait_until_ready()
    assert min(source.pauses) >= 0.02
    assert source.pauses == sorted(source.pauses)
    assert source.pauses[-2:] == [0.25, 0.25]
