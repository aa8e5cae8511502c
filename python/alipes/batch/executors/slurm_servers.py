"""The servers of a run as array jobs of Slurm."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from alipes.batch.executors.commands import answer_of
from alipes.batch.executors.queued import refuse_own_options
from alipes.batch.executors.server_tasks import STOP_S, server_command
from alipes.batch.executors.slurm import COMMANDS, queued_tasks, submit, supervised
from alipes.batch.launch import LaunchFolder
from alipes.errors import BatchError

__all__ = ["SlurmServers", "servers_script"]

_LOOK_S: Final = 0.5


class SlurmServers:
    """An array job, and further ones for servers that are lost."""

    def __init__(self, options: Mapping[str, Any], launch: LaunchFolder) -> None:
        """Takes options of sbatch, and where the servers announce themselves.

        Raises:
            ConfigError: If an option is set by us.
        """
        refuse_own_options(COMMANDS, options)
        self._options, self._launch = options, launch
        self._jobs: dict[int, str] = {}

    def begin(self, numbers: Sequence[int]) -> None:
        """Submits an array job.

        Raises:
            BatchError: If Slurm refuses it.
        """
        script = self._launch.path / f"{len(set(self._jobs.values())):04}.sbatch"
        script.write_text(servers_script(self._launch, numbers, self._options), encoding="utf-8")
        job = submit(script)
        self._jobs |= dict.fromkeys(numbers, job)

    def ended(self) -> list[int]:
        """The numbers of those that are in no queue."""
        queued = {job: queued_tasks(job) for job in set(self._jobs.values())}
        return [number for number, job in self._jobs.items() if number not in queued[job]]

    def stop(self) -> None:
        """Cancels what has not ended, and waits until it has."""
        for job in set(self._jobs.values()):
            with suppress(BatchError):
                answer_of([COMMANDS.cancel, job])
        deadline_s = time.monotonic() + STOP_S
        with suppress(BatchError):
            while len(self.ended()) < len(self._jobs) and time.monotonic() < deadline_s:
                time.sleep(_LOOK_S)


def servers_script(launch: LaunchFolder, numbers: Sequence[int], options: Mapping[str, Any]) -> str:
    """The script of an array job, a server for each of its tasks."""
    # A node may have several names and addresses: others know the one that Slurm has for it.
    command = f"{shlex.join(server_command(launch, 'N')[:-1])} $SLURM_ARRAY_TASK_ID --host $SLURMD_NODENAME"
    array = ",".join(map(str, numbers))
    return supervised(command, "alipes-server", array, str(launch.output("%a")), options)
