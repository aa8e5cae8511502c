"""Engines with a queue run a job round by round, give up where work stays, and leave no job behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from alipes.batch.executors.htcondor import HtcondorExecutor
from alipes.batch.executors.queued import Commands, QueuedExecutor, Submitted
from alipes.batch.executors.slurm import SlurmExecutor
from alipes.batch.folder import PieceReport, RunFolder, Start, WorkerReport
from alipes.batch.plan import FORMAT, Plan, Unit
from alipes.errors import ConfigError

START = Start(1, ["grpc://a:8001"], 2)


class Queue(QueuedExecutor):
    """An engine whose jobs end at once, or at the second look."""

    commands = Commands("Queue", "true", "touch", "the queue's option", frozenset({"array"}), look_s=0.0)
    queued = 0

    def submit(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> Submitted:
        self.queued = 2
        return Submitted(str(folder.path / "cancelled"), "LOGS")

    def is_queued(self, job: str) -> bool:
        self.queued -= 1
        return self.queued > 0


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path / "out")
    run.prepare()
    run.add_plan(Plan(FORMAT, "1", "m", "", "npz", "", [("a.npy", 1, 1)], [Unit(0, 0, -1)], [0, 1], 1, 2))
    return run


def test_jobs_that_leave_work_four_times_end_the_run(folder: RunFolder) -> None:
    executor = Queue({}, lambda: None)
    for _ in range(3):
        executor.run(folder, START, range(2))
        assert executor.failures == []
    executor.run(folder, START, range(2))
    assert executor.failures == ["4 jobs of Queue ended with work left; their logs are LOGS"]
    assert not (folder.path / "cancelled").exists()


def test_jobs_that_do_all_may_be_as_many_as_it_takes(folder: RunFolder) -> None:
    folder.add_piece(PieceReport(0, "", 0, 0, "", []))
    executor = Queue({}, lambda: None)
    for _ in range(5):
        executor.run(folder, START, range(2))
    assert executor.failures == []


def test_what_a_client_says_ends_the_run_at_once(folder: RunFolder) -> None:
    folder.write_worker(WorkerReport(1, 0, "a", 7, state="failed", reason="no such model"))
    folder.write_worker(WorkerReport(2, 0, "a", 8, state="failed", reason="another start's"))
    executor = Queue({}, lambda: None)
    executor.run(folder, START, range(2))
    assert executor.failures == ["no such model"]


def test_an_interrupted_run_cancels_its_job(folder: RunFolder) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Queue({}, interrupt).run(folder, START, range(2))
    assert (folder.path / "cancelled").exists()


def test_options_that_the_run_sets_are_refused() -> None:
    with pytest.raises(ConfigError, match="the run itself sets the queue's option Array: leave it out"):
        Queue({"Array": "0-7"}, lambda: None)


@pytest.mark.parametrize(
    ("executor", "command", "engine"),
    [(SlurmExecutor, "sbatch", "Slurm"), (HtcondorExecutor, "condor_submit", "HTCondor")],
)
def test_an_engine_that_is_not_here_is_named(
    executor: type[QueuedExecutor], command: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match=f"there is no {command} here: start the run on a machine .* {engine}"):
        executor({}, lambda: None)
