"""`alipes status`, and the server that a verb means where nobody says which."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.serve.detached import launch
from support.command import alipes, check_readable
from support.models import add_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

LOOPBACK = [f"--{endpoint}-address=127.0.0.1" for endpoint in ("http", "grpc", "metrics")]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    add_model(folder, "double")
    return folder


@pytest.fixture(scope="module")
def server(serve_module: Serve, models: Path) -> ServerProcess:
    return serve_module(models)


@pytest.fixture(scope="module")
def folder(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder from which a server was launched."""
    folder = tmp_path_factory.mktemp("work")
    with launch(models, folder / "alipes-server.json", server_args=LOOPBACK) as server:
        yield folder
        server.stop()


def test_a_server_tells_its_version_and_its_models(server: ServerProcess) -> None:
    for url in (f"http://{server.http}", server.http, f"grpc://{server.grpc}", server.grpc):
        done = alipes("status", "--url", url)
        first, version, *table = done.rows
        assert done.code == 0
        assert (first[1:], version[0]) == (["is", "ready"], "version")
        assert table == [["model", "version", "state"], ["double", "1", "READY"]]


def test_a_unix_socket_is_an_address_too(serve: Serve, models: Path, tmp_path: Path) -> None:
    sockets = tmp_path.relative_to(tmp_path.parents[2])  # a path of a socket has 107 bytes at most
    with contextlib.chdir(tmp_path.parents[2]):
        serve(models, f"--http-address=unix:{sockets}/http", f"--grpc-address=unix:{sockets}/grpc")
        for url in (f"unix:{sockets}/grpc", f"http://unix:{sockets}/http", f"grpc://unix:{sockets}/grpc"):
            done = alipes("status", "--url", url)
            assert (done.code, done.rows[0][-2:]) == (0, ["is", "ready"])
        done = alipes("explain", "double", "--url", f"http://unix:{sockets}/http")
        assert (done.code, "HTTP port" in done.message) == (1, True)


def test_the_address_may_stand_alone(server: ServerProcess) -> None:
    assert alipes("status", server.http).out == alipes("status", "--url", server.http).out


def test_digits_alone_are_a_port_of_this_machine(server: ServerProcess) -> None:
    for address in (server.http, server.grpc):
        port = address.rpartition(":")[2]
        done = alipes("status", "--url", port)
        assert (done.code, done.rows[0]) == (0, [done.rows[0][0], "is", "ready"])
        assert done.rows[0][0].endswith(f"://localhost:{port}")


def test_the_status_is_json_for_programs(server: ServerProcess) -> None:
    document = json.loads(alipes("status", server.http, "--json").out)
    assert (document["ready"], document["address"]) == (True, f"http://{server.http}")
    assert document["models"] == [{"name": "double", "version": "1", "state": "READY", "reason": ""}]


def test_a_server_that_is_not_ready_is_an_error(serve: Serve, repository: Path) -> None:
    add_model(repository, "broken", config="max_batch_sise: 8")
    server = serve(repository, "--exit-on-error=false")
    done = alipes("status", server.http)
    assert (done.code, done.rows[0][1:]) == (1, ["is", "live,", "and", "not", "ready"])
    assert "max_batch_size" in done.out


def test_verbs_ask_the_server_that_was_launched_in_the_folder(folder: Path) -> None:
    assert alipes("models", "list", folder=folder).rows[1] == ["double", "1", "READY"]
    assert alipes("ask", "double", "1,2", folder=folder).out == "[2.0, 4.0]\n"
    assert "double, version 1" in alipes("explain", "double", folder=folder).out


def test_the_status_of_a_launched_server_names_process_log_and_models(folder: Path) -> None:
    done = alipes("status", folder=folder)
    assert done.code == 0
    assert [row[0] for row in done.rows[1:6]] == ["http", "grpc", "metrics", "log", "version"]
    assert done.rows[-1] == ["double", "1", "READY"]
    assert json.loads(alipes("status", "alipes-server.json", "--json", folder=folder).out)["ready"]


def test_a_monitor_watches_the_server_that_was_launched_in_the_folder(folder: Path) -> None:
    done = alipes("monitor", "--seconds=0", folder=folder)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["absent.json"], 1, "there is no handle"),
        (["absent.json", "--url=localhost:1"], 2, "name the server once"),
        (["--url=http://127.0.0.1:1"], 1, "alipes serve REPOSITORY"),
    ],
)
def test_a_server_that_is_not_there_is_an_error(words: list[str], code: int, message: str, tmp_path: Path) -> None:
    done = alipes("status", *words, folder=tmp_path)
    assert (done.code, done.out) == (code, "")
    assert message in done.message
    check_readable(done)
