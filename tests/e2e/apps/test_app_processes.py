"""The process that has described an app goes on as its first worker: nothing is imported twice, and nothing is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes import Client
from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]

APP = """
import os
import alipes
with open({imports!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")


@alipes.model{options}
def whose(x: int) -> int:
    return os.getpid() + {more} + x
"""


@pytest.fixture
def imports(tmp_path: Path) -> Path:
    """A file with the number of each process that has imported the app."""
    return tmp_path / "imports"


def write(imports: Path, options: str = "", more: int = 0) -> Path:
    file = imports.with_name("app.py")
    file.write_text(APP.format(imports=str(imports), options=options, more=more))
    return file


def pids(imports: Path) -> list[int]:
    return [int(line) for line in imports.read_text().split()]


def whose(server: ServerProcess) -> int:
    with Client(server.grpc) as client:
        return int(client.infer("whose", {"x": [0]})["output_0"][0])


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_process_that_has_imported_an_app_answers(imports: Path, serve: Serve) -> None:
    server = serve(write(imports))
    assert [whose(server)] == pids(imports)


def test_one_that_crashes_is_started_like_any_other(imports: Path, serve: Serve) -> None:
    server = serve(write(imports))
    first = whose(server)
    os.kill(first, signal.SIGKILL)
    server.wait_for_output("takes requests again")
    until(lambda: len(pids(imports)) == 2)
    assert whose(server) == pids(imports)[1] != first


def test_further_instances_import_for_themselves(imports: Path, serve: Serve) -> None:
    serve(write(imports, "(instances=3)"))
    assert len({*pids(imports)}) == len(pids(imports)) == 3


def test_one_that_no_worker_takes_ends_with_the_server(imports: Path, serve: Serve) -> None:
    server = serve(write(imports), "--model-control-mode", "explicit")
    [waiting] = pids(imports)
    assert is_there(waiting)
    server.stop()
    assert not is_there(waiting)


def test_a_model_that_is_loaded_later_finds_it(imports: Path, serve: Serve) -> None:
    server = serve(write(imports), "--model-control-mode", "explicit")
    with Client(server.grpc) as client:
        client.load_model("whose")
        assert [whose(server)] == pids(imports)
        client.unload_model("whose")
        until(lambda: not is_there(pids(imports)[0]))
        client.load_model("whose")
    assert [whose(server)] == pids(imports)[1:]


def test_a_server_that_is_killed_leaves_none(imports: Path, serve: Serve) -> None:
    server = serve(write(imports, "(instances=2)"))
    server.kill()
    until(lambda: not any(map(is_there, pids(imports))))


def test_a_changed_app_goes_on_where_it_was_described(imports: Path, serve: Serve) -> None:
    server = serve(write(imports), "--reload")
    first = whose(server)
    write(imports, more=1 << 40)
    until(lambda: whose(server) != first)
    assert whose(server) == pids(imports)[1] + (1 << 40)
    until(lambda: not is_there(first))
    assert len(pids(imports)) == 2


def test_what_only_looks_like_an_app_leaves_no_process(tmp_path: Path, serve: Serve) -> None:
    add_model(tmp_path / "models", "double", times())
    server = serve(tmp_path / "models", "--id", "a:b")
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    assert [child for child in children if is_there(int(child))] == []
