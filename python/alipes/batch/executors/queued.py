"""What the engines share whose own commands submit jobs and list their queue: Slurm and HTCondor."""

from __future__ import annotations

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from alipes.batch.executors.base import ExecutorOptions, Rounds, Watch
from alipes.batch.executors.commands import answer_of
from alipes.batch.folder import RunFolder, Start
from alipes.errors import BatchError, ConfigError

__all__ = ["Commands", "QueuedExecutor", "Submitted", "refuse_own_options"]


class Commands(NamedTuple):
    """How an engine is used by its commands.

    Attributes:
        engine: The name of the engine.
        submit: The command that submits.
        cancel: The command that removes a job, which is its argument.
        option: What messages call an option of it.
        own_options: Options that the run itself sets, in lower case.
        look_s: Seconds between two looks at the queue.
    """

    engine: str
    submit: str
    cancel: str
    option: str
    own_options: Collection[str]
    look_s: float


class Submitted(NamedTuple):
    """A job for the clients of a start.

    Attributes:
        job: Its number.
        logs: Where its clients write what goes wrong, for messages.
    """

    job: str
    logs: Path | str


class QueuedExecutor(ABC):
    """Submits a job for the clients of a start, and waits until it has left the queue.

    Attributes:
        failures: Why clients ended that could not go on.
    """

    commands: ClassVar[Commands]

    def __init__(self, options: ExecutorOptions, watch: Watch) -> None:
        """Looks for the commands of the engine.

        Args:
            options: Options of the command that submits.
            watch: Called again and again while clients run.

        Raises:
            ConfigError: If the engine is not here, or an option is set by us.
        """
        if shutil.which(self.commands.submit) is None:
            raise ConfigError(
                f"there is no {self.commands.submit} here: start the run on a machine that submits to "
                f"{self.commands.engine}",
                key="executor",
            )
        refuse_own_options(self.commands, options)
        self.options: Final = options
        self._watch = watch
        self._rounds = Rounds()
        self.failures = self._rounds.failures

    def run(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> None:
        """Runs the clients of some shards to their end. What interrupts it removes their job.

        Raises:
            BatchError: If the engine refuses the job, or holds it.
        """
        self._rounds.begin()
        job, logs = self.submit(folder, start, shards)
        try:
            while self.is_queued(job):
                self._watch()
                time.sleep(self.commands.look_s)
            job = ""
        finally:
            if job:
                with suppress(BatchError):
                    answer_of([self.commands.cancel, job])
        self._rounds.end(folder, start, f"jobs of {self.commands.engine} ended with work left; their logs are {logs}")

    @abstractmethod
    def submit(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> Submitted:
        """Submits a job for the clients of some shards.

        Raises:
            BatchError: If the engine refuses it.
        """

    @abstractmethod
    def is_queued(self, job: str) -> bool:
        """Whether a client of a job waits or runs.

        Raises:
            BatchError: If the engine does not answer, or holds a client.
        """


def refuse_own_options(commands: Commands, options: Iterable[str]) -> None:
    """Refuses options that the run itself sets.

    Raises:
        ConfigError: If one is among them.
    """
    if wrong := [name for name in options if name.lower() in commands.own_options]:
        raise ConfigError(f"the run itself sets {commands.option} {wrong[0]}: leave it out", key="executor_options")
