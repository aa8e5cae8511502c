"""The clients of a run as jobs of HTCondor, by its own commands. Beside the submit file stands one for DAGMan.

Its library has read these files; no pool has run them yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from alipes.batch.executors.base import worker_command
from alipes.batch.executors.commands import answer_of
from alipes.batch.executors.queued import Commands, QueuedExecutor, Submitted
from alipes.batch.folder import RunFolder, Start
from alipes.batch.worker import STOPPED
from alipes.errors import BatchError

__all__ = ["COMMANDS", "HtcondorExecutor", "dag_text", "submit_text"]

_RETRIES: Final = 3
_HELD: Final = "5"
"""`JobStatus` of a job that waits for somebody to look at it."""
_OURS: Final = frozenset(
    {"arguments", "error", "executable", "log", "max_retries", "output", "queue", "retry_until"},
)

COMMANDS: Final = Commands("HTCondor", "condor_submit", "condor_rm", "the submit file's command", _OURS, look_s=5.0)
"""Options are commands of a submit file: `request_memory`, `accounting_group`, `requirements`, `+Name`."""


class HtcondorExecutor(QueuedExecutor):
    """Submits a job for each client."""

    commands = COMMANDS

    def submit(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> Submitted:
        """Submits them.

        Raises:
            BatchError: If HTCondor refuses them.
        """
        file = _written(folder, start, shards, self.options)
        cluster = answer_of(["condor_submit", "-terse", str(file)]).split(".")[0].strip()
        return Submitted(cluster, f"{file.with_suffix('')}-*.err")

    def is_queued(self, job: str) -> bool:
        """Whether a client waits or runs.

        Raises:
            BatchError: If HTCondor does not answer, or holds a client.
        """
        jobs = _jobs(job)
        if held := [words for words in jobs if words[:1] == [_HELD]]:
            raise BatchError(f"HTCondor holds a client: {' '.join(held[0][1:]) or 'no reason'}")
        return bool(jobs)


def submit_text(folder: RunFolder, start: Start, shards: Sequence[int] | None, options: Mapping[str, Any]) -> str:
    """A submit file.

    Args:
        folder: The folder of the run.
        start: The start.
        shards: The shards of the jobs; `None` where DAGMan says the one.
        options: Further commands.
    """
    python, *words = worker_command(folder, "$(shard)", start)
    log = folder.path.absolute() / "starts" / f"{start.number:04}"
    lines = [
        "universe = vanilla",
        f"executable = {python}",
        f'arguments = "{_quoted(words)}"',
        # The file system is the same here and there, and so are the inputs.
        "should_transfer_files = NO",
        "getenv = ALIPES_*",
        f"log = {log}.log",
        f"output = {log}-$(shard).out",
        f"error = {log}-$(shard).err",
        "kill_sig = SIGTERM",
        # One that was asked to stop goes on; one that says why it cannot is not started again.
        f"checkpoint_exit_code = {STOPPED}",
        f"max_retries = {_RETRIES}",
        "retry_until = ExitCode =?= 0 || ExitCode =?= 1",
        *(f"{name} = {value}" for name, value in options.items()),
        "queue 1" if shards is None else "queue shard from (",
        *(() if shards is None else (*map(str, shards), ")")),
        "",
    ]
    return "\n".join(lines)


def dag_text(file: Path, shards: Sequence[int]) -> str:
    """A file for DAGMan: a node for each shard.

    Args:
        file: The submit file of a node.
        shards: The shards.
    """
    lines = []
    for shard in shards:
        lines += [
            f"JOB shard{shard} {file}",
            f'VARS shard{shard} shard="{shard}"',
            f"RETRY shard{shard} {_RETRIES} UNLESS-EXIT 1",
        ]
    return "\n".join([*lines, ""])


def _written(folder: RunFolder, start: Start, shards: Sequence[int], options: Mapping[str, Any]) -> Path:
    base = folder.path.absolute() / "starts" / f"{start.number:04}"
    submit, node, dag = (base.with_suffix(end) for end in (".sub", ".node.sub", ".dag"))
    _write(folder, submit, submit_text(folder, start, shards, options))
    _write(folder, node, submit_text(folder, start, None, options))
    _write(folder, dag, dag_text(node, shards))
    return submit


def _write(folder: RunFolder, path: Path, text: str) -> None:
    folder.write_aside(path, lambda aside: aside.write_text(text, encoding="utf-8"))


def _jobs(cluster: str) -> list[list[str]]:
    """By job that waits, runs or is held: its status, and why it is held."""
    answer = answer_of(["condor_q", cluster, "-af", "JobStatus", "HoldReason"])
    return [line.split() for line in answer.splitlines() if line.strip()]


def _quoted(words: Sequence[str]) -> str:
    """Words as a submit file has them between double quotes. Source: condor_submit, "arguments", the new syntax."""

    def one(word: str) -> str:
        if any(sign in word for sign in " \t'"):
            word = "'" + word.replace("'", "''") + "'"
        return word.replace('"', '""')

    return " ".join(map(one, words))
