"""HTTP/2 without encryption on the HTTP listener."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.curl import curl as run_curl
from support.http2 import HEADERS, PREFACE, Connection
from support.http2 import request as http2_request
from support.models import add_model
from support.server import ServerProcess

REQUEST = {"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}
INFER = "/v2/models/double/infer"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(repository)


def curl(*arguments: str) -> tuple[str, str]:
    """The protocol that curl spoke in the end, and the body."""
    printed = run_curl("-w", "\n%{http_version}", *arguments).decode()
    body, _, version = printed.rpartition("\n")
    return version, body


def test_a_client_that_knows_speaks_http2_from_the_start(server: ServerProcess) -> None:
    version, body = curl("--http2-prior-knowledge", f"http://{server.http}{INFER}", "-d", json.dumps(REQUEST))
    assert (version, json.loads(body)["outputs"][0]["data"]) == ("2", [2.0, 4.0])


def test_a_client_that_asks_for_an_upgrade_is_answered_over_http1(server: ServerProcess) -> None:
    version, body = curl("--http2", f"http://{server.http}/v2/models/double")
    assert (version, json.loads(body)["name"]) == ("1.1", "double")


def test_requests_behind_an_ignored_upgrade_use_the_same_connection(server: ServerProcess) -> None:
    url = f"http://{server.http}/v2/models/double"
    version, body = curl("--http2", url, url, url)
    assert re.findall(r'"name":"double"', body) == ['"name":"double"'] * 3
    assert version == "1.1"


def test_an_upgrade_with_a_body_is_answered_over_http1(server: ServerProcess) -> None:
    version, body = curl("--http2", f"http://{server.http}{INFER}", "-d", json.dumps(REQUEST))
    assert (version, json.loads(body)["outputs"][0]["data"]) == ("1.1", [2.0, 4.0])


def test_a_large_body_comes_and_goes_over_http2(server: ServerProcess, tmp_path: Path) -> None:
    rows = 50_000
    tensor = {"name": "X", "shape": [4, 2], "datatype": "FP32", "data": [1] * 8}
    text = json.dumps({"inputs": [tensor], "parameters": {"padding": "x" * rows * 20}})
    (tmp_path / "body").write_text(text)
    version, body = curl(
        "--http2-prior-knowledge", f"http://{server.http}{INFER}", "--data-binary", f"@{tmp_path / 'body'}"
    )
    assert (version, json.loads(body)["outputs"][0]["data"]) == ("2", [2.0] * 8)


@pytest.mark.parametrize(
    "headers",
    [
        ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: "],
        ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"],
        ["Connection: Upgrade", "Upgrade: h2c"],
        ["Connection: Upgrade, HTTP2-Settings", "Upgrade: websocket", "HTTP2-Settings: AAMAAABk"],
        ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: %%%"],
    ],
)
def test_an_upgrade_header_is_ignored_and_the_connection_stays(server: ServerProcess, headers: list[str]) -> None:
    host, port = server.http.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as link, link.makefile("rb") as stream:
        for _ in range(2):
            link.sendall("\r\n".join(["GET /v2/models/double HTTP/1.1", "Host: x", *headers, "", ""]).encode())
            assert stream.readline().startswith(b"HTTP/1.1 200 ")
            answered = dict(line.lower().split(b": ", 1) for line in iter(stream.readline, b"\r\n"))
            assert b"upgrade" not in answered
            assert json.loads(stream.read(int(answered[b"content-length"])))["name"] == "double"
        link.sendall("\r\n".join(["OPTIONS /v2/health/live HTTP/1.1", "Host: x", *headers, "", ""]).encode())
        assert stream.readline().startswith(b"HTTP/1.1 405 ")


def test_a_client_that_is_no_client_ends_its_own_connection_only(server: ServerProcess) -> None:
    for wire in (PREFACE[:-2] + b"XX" + b"\0" * 50, PREFACE + b"\xff" * 100, PREFACE[:10]):
        host, port = server.http.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=30) as link:
            link.sendall(wire)
            # The server may be quicker to leave.
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_WR)
                link.makefile("rb").read()
    with Connection(server.http) as connection:
        connection.send(http2_request(1, "GET", "/v2/health/live"))
        assert connection.next(HEADERS).stream == 1


def test_h2load_finds_no_failure(server: ServerProcess, tmp_path: Path) -> None:
    if shutil.which("h2load") is None:
        pytest.skip("h2load is not installed")
    (tmp_path / "body").write_text(json.dumps(REQUEST))
    command = ["h2load", "-n", "2000", "-c", "4", "-m", "10", "-d", str(tmp_path / "body"), "-H", "content-type: x"]
    printed = subprocess.run(
        [*command, f"http://{server.http}{INFER}"], capture_output=True, timeout=100, check=True
    ).stdout.decode()
    assert "2000 succeeded, 0 failed, 0 errored" in printed
    assert "2000 2xx" in printed
