"""What servers do is watched over encrypted connections, and where there is no HTTP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes.client import Client, Tls
from alipes.errors import TlsError
from alipes.monitor import ServerMonitor, read_rows
from support.certificates import Authority, encrypted
from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

Serve = Callable[..., ServerProcess]


@pytest.fixture
def models(repository: Path) -> Path:
    add_model(repository, "double", times())
    return repository


def port(address: str) -> int:
    return int(address.rpartition(":")[2])


def watch(server: ServerProcess, file: Path, *, http_port: int, tls: Tls | None = None) -> ServerMonitor:
    ports = {"metrics_port": port(server.metrics), "grpc_port": port(server.grpc), "http_port": http_port}
    return ServerMonitor("double", "127.0.0.1", file, tls=tls, **ports)


def ask(server: ServerProcess, tls: Tls | None = None) -> None:
    with Client(server.grpc, tls=tls) as client:
        client.infer("double", np.ones((1, 2), np.float32))


def test_encrypted_endpoints_are_watched(models: Path, authority: Authority, serve: Serve, tmp_path: Path) -> None:
    files = authority.files("server")
    server = serve(models, *[flag for endpoint in ("http", "grpc", "metrics") for flag in encrypted(endpoint, files)])
    tls, record = Tls(roots=authority.root), tmp_path / "stats.csv"
    with watch(server, record, http_port=port(server.http), tls=tls):
        ask(server, tls)
    assert sum(row.count for row in read_rows(record)) == 1


def test_the_command_line_watches_encrypted_endpoints(
    models: Path, authority: Authority, serve: Serve, tmp_path: Path
) -> None:
    files = authority.files("server")
    server = serve(models, *[flag for endpoint in ("http", "grpc", "metrics") for flag in encrypted(endpoint, files)])
    ports = [f"--{endpoint}-port={port(getattr(server, endpoint))}" for endpoint in ("http", "grpc", "metrics")]
    command = [sys.executable, "-m", "alipes", "monitor", "127.0.0.1", "--model=double", "--seconds=0.1", *ports]
    trusted = [f"--tls-roots={authority.root}"]
    done = subprocess.run(
        [*command, *trusted], capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    foreign = subprocess.run(
        [*command, "--tls"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=tmp_path
    )
    assert foreign.returncode == 1
    assert foreign.stderr.startswith("error: ")
    assert "certificate" in foreign.stderr


def test_an_untrusted_certificate_is_an_error_at_once(
    models: Path, authority: Authority, serve: Serve, tmp_path: Path
) -> None:
    files = authority.files("server")
    server = serve(models, *[flag for endpoint in ("http", "grpc", "metrics") for flag in encrypted(endpoint, files)])
    (tmp_path / "other").mkdir()
    stranger = Tls(roots=Authority(tmp_path / "other").root)
    with pytest.raises(TlsError, match="certificate"):
        watch(server, tmp_path / "stats.csv", http_port=port(server.http), tls=stranger)


def test_a_server_without_http_is_watched(models: Path, serve: Serve, tmp_path: Path) -> None:
    server, record = serve(models), tmp_path / "stats.csv"
    with watch(server, record, http_port=1):  # a port without a listener
        ask(server)
    assert sum(row.count for row in read_rows(record)) == 1
