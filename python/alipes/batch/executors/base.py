"""What every engine does: run the clients of a run to their end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from alipes.batch.folder import RunFolder, Start

__all__ = ["Executor", "ExecutorOptions", "Watch", "failures_of", "worker_command"]

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


def failures_of(folder: RunFolder, start: Start) -> list[str]:
    """Why clients of a start say that they failed."""
    return [one.reason for one in folder.workers() if one.start == start.number and one.state == "failed"]
