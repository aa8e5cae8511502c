"""The clients of a run as an array job of Slurm, by its own commands.

A client whose time is over, or whose node goes away, is queued again and goes on with what is missing.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from alipes.batch.executors.base import worker_command
from alipes.batch.executors.commands import answer_of
from alipes.batch.executors.queued import Commands, QueuedExecutor, Submitted
from alipes.batch.folder import RunFolder, Start
from alipes.batch.worker import STOPPED
from alipes.errors import BatchError

__all__ = ["COMMANDS", "SlurmExecutor", "queued_tasks", "slurm_script", "submit", "supervised"]

_BEFORE_END_S: Final = 60
"""How long before its time is over a client is asked to stop."""
_OURS: Final = frozenset({"array", "job-name", "open-mode", "output", "requeue", "signal"})

COMMANDS: Final = Commands("Slurm", "sbatch", "scancel", "sbatch's option", _OURS, look_s=1.0)
"""Options are those of sbatch by their long names: `partition`, `time`, `account`, `mem`."""


class SlurmExecutor(QueuedExecutor):
    """Submits an array job, a client for each of its tasks. A next round is sooner than Slurm's requeue."""

    commands = COMMANDS

    def submit(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> Submitted:
        """Submits it.

        Raises:
            BatchError: If Slurm refuses it.
        """
        log = folder.path.absolute() / "starts" / f"{start.number:04}"
        script = log.with_suffix(".sbatch")
        text = slurm_script(folder, start, shards, self.options, log)
        folder.write_aside(script, lambda path: path.write_text(text, encoding="utf-8"))
        return Submitted(submit(script), f"{log}-*.log")

    def is_queued(self, job: str) -> bool:
        """Whether a task waits or runs.

        Raises:
            BatchError: If Slurm does not answer.
        """
        return bool(queued_tasks(job))


def slurm_script(folder: RunFolder, start: Start, shards: Sequence[int], options: Mapping[str, Any], log: Path) -> str:
    """The script of an array job, a client for each of its tasks."""
    command = shlex.join(worker_command(folder, "SHARD", start)).replace("SHARD", "$SLURM_ARRAY_TASK_ID")
    return supervised(command, "alipes-batch", f"{min(shards)}-{max(shards)}", f"{log}-%a.log", options)


def supervised(command: str, name: str, array: str, log: str, options: Mapping[str, Any]) -> str:
    """The script of an array job whose tasks are queued again where they are asked to stop.

    Args:
        command: What a task runs, as a shell has it.
        name: Of the job.
        array: Numbers of the tasks.
        log: Where each writes.
        options: Options of sbatch; one without a value is written `name=`.
    """
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={name}",
        f"#SBATCH --array={array}",
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        f"#SBATCH --signal=B:TERM@{_BEFORE_END_S}",
        f"#SBATCH --output={shlex.quote(str(log))}",
        *(f"#SBATCH --{option}={value}".rstrip("=") for option, value in options.items()),
        "",
        # Where Slurm kills this shell alone, as without control groups, the process ends with it.
        f"{command} --parent $$ &",
        "process=$!",
        # Slurm signals this shell alone, whose wait the signal interrupts.
        "trap 'kill -TERM $process' TERM",
        "wait $process; code=$?",
        "while kill -0 $process 2>/dev/null; do wait $process; code=$?; done",
        f'if [ $code = {STOPPED} ]; then scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"; fi',
        "exit $code",
        "",
    ]
    return "\n".join(lines)


def submit(script: Path) -> str:
    """Submits a script; returns the number of the job.

    Raises:
        BatchError: If Slurm refuses it.
    """
    return answer_of(["sbatch", "--parsable", str(script)]).split(";")[0].strip()


def queued_tasks(job: str) -> set[int]:
    """The tasks of an array job that wait or run.

    Raises:
        BatchError: If Slurm does not answer.
    """
    try:
        answer = answer_of(["squeue", "--noheader", "--array", "--jobs", job, "--format", "%K"])
    except BatchError as error:
        if "Invalid job id" in str(error):  # forgotten already
            return set()
        raise
    return {int(word) for word in answer.split() if word.isdecimal()}
