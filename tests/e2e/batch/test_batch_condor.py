"""A run by HTCondor's commands, played by programs of the test: killed clients cost no row, held ones are named."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.batch_runs import BatchProcess, RowsByPlace, await_held, clients_of, rows_of
from support.condor_commands import add_condor_commands
from support.server import ServerProcess
from support.waiting import until

pytestmark = pytest.mark.proof


@pytest.fixture
def commands(tmp_path: Path) -> dict[str, str]:
    add_condor_commands(tmp_path / "condor")
    return {"PATH": f"{tmp_path / 'condor'}:{os.environ['PATH']}"}


def words_of(tmp_path: Path, server: ServerProcess) -> tuple[object, ...]:
    words = ("picky", tmp_path / "data", "-o", tmp_path / "out", "--url", server.grpc, "--clients", 2)
    return (*words, "--in-flight", 1, "--batch", 3, "--executor", "htcondor")


def test_a_client_of_htcondor_that_is_killed_is_submitted_again(
    server: ServerProcess, tmp_path: Path, notes: Path, expected: RowsByPlace, commands: dict[str, str]
) -> None:
    with BatchProcess(*words_of(tmp_path, server), variables=commands) as run:
        await_held(notes)
        for client in clients_of(tmp_path / "out"):
            if client.state == "runs":
                os.kill(client.pid, signal.SIGKILL)
        (notes / "go").touch()
        done = run.wait()
    assert (done.code, done.err) == (0, "")
    assert rows_of(tmp_path / "out") == expected
    assert {file.suffix for file in (tmp_path / "out" / "starts").iterdir()} >= {".sub", ".dag", ".json"}


def test_a_client_that_htcondor_holds_ends_the_run_with_the_reason(
    server: ServerProcess, tmp_path: Path, notes: Path, commands: dict[str, str]
) -> None:
    with BatchProcess(*words_of(tmp_path, server), variables=commands) as run:
        await_held(notes)
        (tmp_path / "condor" / "held").touch()
        done = run.wait()
        (notes / "go").touch()
        until(lambda: all(one.state != "runs" for one in clients_of(tmp_path / "out")), "the client is removed")
    assert done.code == 1
    assert "HTCondor holds a client: no such machine" in done.message


def test_a_machine_without_htcondor_is_named(server: ServerProcess, tmp_path: Path) -> None:
    with BatchProcess(*words_of(tmp_path, server), variables={"PATH": "/nowhere"}) as run:
        done = run.wait()
    assert done.code == 1
    assert "there is no condor_submit here" in done.message
