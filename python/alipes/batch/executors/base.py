"""What every engine does: run the clients of a run to their end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from alipes.batch.folder import RunFolder, Start

__all__ = ["MOST_ROUNDS", "Executor", "ExecutorOptions", "Rounds", "Watch", "worker_command"]

MOST_ROUNDS: Final = 4
"""How often clients are submitted that end and leave work, as those do that are killed."""

Watch: TypeAlias = Callable[[], None]
"""Called again and again while clients run."""

ExecutorOptions: TypeAlias = Mapping[str, Any]
"""What an engine needs to know: the partition of Slurm, the address of a scheduler of Dask."""


class Executor(Protocol):
    """An engine.

    Attributes:
        failures: Why clients ended that could not go on.
    """

    failures: list[str]

    def run(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> None:
        """Runs the clients of some shards to their end. What interrupts it stops them."""


def worker_command(folder: RunFolder, shard: int | str, start: Start) -> list[str]:
    """The command line of a client, the same under every engine."""
    command = [sys.executable, "-m", "alipes.batch.worker", str(folder.path.absolute()), str(shard)]
    return [*command, "--start", str(start.number)]


@dataclass
class Rounds:
    """How often the clients of a start were submitted as jobs, and why they could not go on.

    Attributes:
        failures: Why clients ended that could not go on.
    """

    failures: list[str] = field(default_factory=list)
    count: int = 0

    def begin(self) -> None:
        """Begins a round."""
        self.count += 1

    def end(self, folder: RunFolder, start: Start, what: str) -> bool:
        """Ends a round: adds what clients say that failed, and gives up where too many rounds left work.

        Args:
            folder: The folder of the run.
            start: The start.
            what: What ended with work left, for messages: jobs, and where their logs are.

        Returns:
            Whether work is left.
        """
        self.failures += [one.reason for one in folder.workers() if one.start == start.number and one.state == "failed"]
        # Clients that were killed say nothing: the next round does their shards.
        is_left = len(folder.done()) < folder.plan().piece_count
        if is_left and not self.failures and self.count >= MOST_ROUNDS:
            self.failures.append(f"{MOST_ROUNDS} {what}")
        return is_left
