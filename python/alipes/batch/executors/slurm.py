"""The clients of a run as an array job of Slurm, by its own commands.

A client whose time is over, or whose node goes away, is queued again and goes on with what is missing.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from alipes.batch.executors.base import ExecutorOptions, Watch, failures_of, worker_command
from alipes.batch.folder import RunFolder, Start
from alipes.batch.worker import STOPPED
from alipes.errors import BatchError, ConfigError

__all__ = ["SlurmExecutor", "slurm_script"]

_LOOK_S: Final = 1.0
_BEFORE_END_S: Final = 60
"""How long before its time is over a client is asked to stop."""
_MOST_ROUNDS: Final = 4
_COMMAND_S: Final = 60.0
_OURS: Final = ("array", "job-name", "open-mode", "output", "requeue", "signal")
"""Options of sbatch that are set here."""


class SlurmExecutor:
    """Submits an array job, and waits for it."""

    def __init__(self, options: ExecutorOptions, watch: Watch) -> None:
        """Looks for Slurm's commands.

        Args:
            options: Options of sbatch by their long names: `partition`, `time`, `account`, `mem`.
            watch: Called again and again while clients run.

        Raises:
            ConfigError: If Slurm is not here, or an option is set by us.
        """
        if shutil.which("sbatch") is None:
            raise ConfigError(
                "there is no sbatch here: start the run on a machine that submits to Slurm", key="executor"
            )
        if wrong := [name for name in options if name in _OURS]:
            raise ConfigError(f"the option {wrong[0]} of sbatch is set by the run itself", key="executor_options")
        self._options, self._watch = options, watch
        self._rounds = 0
        self.failures: list[str] = []

    def run(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> None:
        """Runs the clients of some shards to their end.

        Raises:
            BatchError: If Slurm refuses the job.
        """
        log = folder.path.absolute() / "starts" / f"{start.number:04}"
        script = log.with_suffix(".sbatch")
        text = slurm_script(folder, start, shards, self._options, log)
        folder.write_aside(script, lambda path: path.write_text(text, encoding="utf-8"))
        job = _answer_of(["sbatch", "--parsable", str(script)]).split(";")[0].strip()
        try:
            while _is_queued(job):
                self._watch()
                time.sleep(_LOOK_S)
            job = ""
        finally:
            if job:
                with suppress(BatchError):
                    _answer_of(["scancel", job])
        self._rounds += 1
        self.failures += failures_of(folder, start)
        # Clients that were killed say nothing: their shards are submitted again, which is sooner than Slurm's requeue.
        left = len(folder.done()) < folder.plan().piece_count
        if left and not self.failures and self._rounds >= _MOST_ROUNDS:
            self.failures.append(f"{_MOST_ROUNDS} array jobs ended with work left; their logs are {log}-*.log")


def slurm_script(folder: RunFolder, start: Start, shards: Sequence[int], options: ExecutorOptions, log: Path) -> str:
    """The script of an array job, a client for each of its tasks."""
    lines = [
        "#!/bin/bash",
        "#SBATCH --job-name=alipes-batch",
        f"#SBATCH --array={min(shards)}-{max(shards)}",
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        f"#SBATCH --signal=B:TERM@{_BEFORE_END_S}",
        f"#SBATCH --output={log}-%a.log",
        *(f"#SBATCH --{name}={value}" for name, value in options.items()),
        "",
        f"{shlex.join(worker_command(folder, 'SHARD', start)).replace('SHARD', '$SLURM_ARRAY_TASK_ID')} &",
        "client=$!",
        # Slurm signals this shell alone, whose wait the signal interrupts.
        "trap 'kill -TERM $client' TERM",
        "wait $client; code=$?",
        "while kill -0 $client 2>/dev/null; do wait $client; code=$?; done",
        f'if [ $code = {STOPPED} ]; then scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"; fi',
        "exit $code",
        "",
    ]
    return "\n".join(lines)


def _is_queued(job: str) -> bool:
    """Whether anything of a job waits or runs."""
    try:
        return bool(_answer_of(["squeue", "--noheader", "--jobs", job, "--format", "%T"]).strip())
    except BatchError as error:
        if "Invalid job id" in str(error):  # forgotten already
            return False
        raise


def _answer_of(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BatchError(f"{command[0]} does not answer: {error}") from error
    if done.returncode:
        raise BatchError(f"{command[0]} refuses: {done.stderr.strip() or done.returncode}")
    return done.stdout
