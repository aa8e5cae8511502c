"""Every endpoint can be a path instead of a port."""

from __future__ import annotations

import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from support.curl import curl
from support.server import ServerDidNotStart, ServerProcess


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: the path of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="alipes-") as name:
        yield Path(name)


def flags(folder: Path) -> list[str]:
    return [f"--{endpoint}-address=unix:{folder / endpoint}" for endpoint in ("http", "grpc", "metrics")]


def ask(path: Path, request: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(str(path))
        link.sendall(f"{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return link.makefile("rb").read()


def test_all_endpoints_answer_on_paths_that_go_with_the_server(
    models: Path, folder: Path, serve: Callable[..., ServerProcess]
) -> None:
    server = serve(models, *flags(folder))
    assert (server.http, server.grpc) == (f"unix:{folder}/http", f"unix:{folder}/grpc")
    assert ask(folder / "http", "GET /v2/models/double/ready").startswith(b"HTTP/1.1 200")
    assert b"nv_inference_count" in ask(folder / "metrics", "GET /metrics")
    # gRPC would give the path as the name of the host, which the HTTP/2 library takes for none.
    with grpc.insecure_channel(server.grpc, options=[("grpc.default_authority", "localhost")]) as channel:
        live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
        assert live(b"", timeout=30) == b"\x08\x01"
    assert server.stop() == 0
    assert list(folder.iterdir()) == []


def test_curl_reaches_a_path(models: Path, folder: Path, serve: Callable[..., ServerProcess]) -> None:
    serve(models, *flags(folder))
    printed = curl("-f", "--unix-socket", folder / "http", "http://localhost/v2/models/double")
    assert b'"name":"double"' in printed


def test_a_socket_that_a_killed_server_left_is_replaced(
    models: Path, folder: Path, serve: Callable[..., ServerProcess]
) -> None:
    serve(models, *flags(folder)).kill()
    assert stat.S_ISSOCK((folder / "http").stat().st_mode)
    server = serve(models, *flags(folder))
    assert ask(folder / "http", "GET /v2/health/ready").startswith(b"HTTP/1.1 200")
    assert server.stop() == 0


def test_a_path_in_use_is_refused_before_models_load(
    models: Path, folder: Path, serve: Callable[..., ServerProcess]
) -> None:
    serve(models, *flags(folder))
    with pytest.raises(ServerDidNotStart) as caught:
        serve(models, f"--http-address=unix:{folder}/http")
    assert f"Socket 'unix:{folder}/http' already in use" in caught.value.output
    assert ask(folder / "http", "GET /v2/health/ready").startswith(b"HTTP/1.1 200")
