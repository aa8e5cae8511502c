"""`alipes monitor` as it is read: which port an address means, and messages that stand on lines of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command import alipes, check_readable
from support.models import add_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

# Nothing listens there: it is reserved, and nobody may use it but the system.
NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(repository)


@pytest.mark.parametrize("endpoint", ["http", "grpc", "metrics"])
def test_an_address_may_be_that_of_any_endpoint(endpoint: str, server: ServerProcess) -> None:
    metrics = f"--metrics-port={server.metrics.rpartition(':')[2]}"
    address = getattr(server, endpoint)
    scheme = "" if endpoint == "metrics" else f"{endpoint}://"
    for words in ([address], ["--url", address], [f"{scheme}{address}"]):
        done = alipes("monitor", *words, metrics, "--seconds=0")
        assert (done.code, done.err) == (0, "")
        assert done.rows[0][0] == "model"


def test_an_address_of_http_serves_questions_about_models(server: ServerProcess) -> None:
    metrics = f"--metrics-port={server.metrics.rpartition(':')[2]}"
    done = alipes("monitor", "--url", server.http, metrics, "--model=doubel", "--seconds=0")
    assert done.code == 1
    assert "'double'" in done.message
    check_readable(done)


def test_a_wrong_port_has_lines_of_its_own(tmp_path: Path) -> None:
    both = tmp_path / "both"
    with both.open("w") as file:
        command = [sys.executable, "-m", "alipes", "monitor", NOBODY, "--seconds=0"]
        code = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, timeout=TIMEOUT_S, check=False).returncode
    lines = both.read_text().splitlines()
    assert code == 1
    assert lines[0].startswith("note: the metrics of 127.0.0.1:1 do not answer")
    assert lines[-2:] == [
        "error: name the port of the metrics with --metrics-port, or start the server",
        "  127.0.0.1:1 never answered",
    ]
    assert "nothing was executed" not in both.read_text()
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("servers", [[NOBODY], [NOBODY, "localhost:1"], [NOBODY, "localhost:1", "127.0.0.2:1"]])
def test_servers_that_never_answer_have_one_note_and_an_error(servers: list[str]) -> None:
    done = alipes("monitor", *servers, "--seconds=0")
    lines = done.err.splitlines()
    assert (done.code, len(lines) <= 4) == (1, True)
    assert [line.partition(":")[0] for line in lines if not line.startswith(" ")] == ["note", "error"]
    assert f"{', '.join(servers)} never answered" in done.err
    check_readable(done)


def test_a_server_that_ends_has_lines_of_its_own(serve: Serve, repository: Path, tmp_path: Path) -> None:
    add_model(repository, "double")
    server = serve(repository)
    both = tmp_path / "both"
    command = [sys.executable, "-m", "alipes", "monitor", server.metrics, f"--output={tmp_path / 'record'}"]
    with both.open("w") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT) as process:
        try:
            until(lambda: (tmp_path / "record").exists() and (tmp_path / "record").read_text() != "")
            server.stop()
            until(lambda: "it is tried again" in " ".join(both.read_text().split()))
        finally:
            process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    text = both.read_text()
    assert text.startswith("note: the metrics of ")
    assert text.splitlines()[-2].startswith("model ")
    assert text.endswith("none has been answered\n")


def test_an_address_of_another_kind_is_refused() -> None:
    done = alipes("monitor", "--url", "unix:/somewhere", "--seconds=0")
    assert (done.code, "http://HOST:PORT" in done.message) == (1, True)
    check_readable(done)
