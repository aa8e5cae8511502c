"""Real Slurm queues a client again whose time is over, or that somebody requeues: it goes on with what is missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from alipes.batch.folder import RunFolder
from support.batch_runs import BatchProcess, add_files, add_picky, await_held, done_pieces, rows_of
from support.server import ServerProcess
from support.slurm import skip_without_slurm, slurm, slurm_answer
from support.waiting import until

Serve = Callable[..., ServerProcess]

# What Slurm itself does to a task whose time is over in a minute; what its operator types.
WAYS = {"signal": ("scancel", "--batch", "--signal=TERM"), "requeue": ("scontrol", "requeue")}


@pytest.mark.proof
@pytest.mark.parametrize("way", WAYS)
def test_a_client_that_slurm_queues_again_does_what_is_missing(
    serve: Serve, repository: Path, tmp_path: Path, way: str
) -> None:
    skip_without_slurm()
    add_picky(repository)
    expected = add_files(tmp_path / "data", 48)
    notes, out = tmp_path / "notes", tmp_path / "out"
    notes.mkdir()
    server = serve(repository, environment={"NOTES": str(notes)})
    words = ("picky", tmp_path / "data", "-o", out, "--url", server.grpc, "--in-flight", 1, "--batch", 3)
    with slurm(tmp_path) as variables, BatchProcess(*words, "--executor", "slurm", variables=variables) as run:
        await_held(notes)
        before = done_pieces(out)
        (task,) = slurm_answer(variables, "squeue", "--noheader", "--array", "--format", "%i").split()
        assert slurm_answer(variables, *WAYS[way], task) == ""
        if way == "requeue":  # Slurm kills the client, whose row is held
            (killed,) = RunFolder(out).workers()
            until(lambda: not psutil.pid_exists(killed.pid), "the client is not killed")
        (notes / "go").touch()
        until(lambda: restarts(variables, task) == 1, "it is not queued again")
        (script,) = (out / "starts").glob("*.sbatch")
        assert "--requeue" in script.read_text()
        done = run.wait()  # Slurm lets a job wait for two minutes that is queued again
        assert slurm_answer(variables, "squeue", "--noheader") == ""
    assert (done.code, done.err) == (0, "")
    assert rows_of(out) == expected
    assert before.items() <= done_pieces(out).items(), "what was done is not done again"
    first, second = sorted(RunFolder(out).workers(), key=lambda client: client.begun_s)
    assert second.state == "ended"
    assert second.pieces > 0
    if way == "signal":
        assert first.state == "stopped"
    if first.state == "stopped":
        assert first.pieces + second.pieces == len(list((out / "pieces").glob("*.json"))), "no piece was done twice"


def restarts(variables: dict[str, str], task: str) -> int:
    """How often Slurm has queued a task again."""
    found = re.search(r"Restarts=(\d+)", slurm_answer(variables, "scontrol", "show", "job", task))
    return int(found[1]) if found else 0
