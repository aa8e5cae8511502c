"""A client of a run as a task of an engine that runs functions: beside its worker, in a process of its own."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field

from alipes.batch.executors.base import MOST_ROUNDS
from alipes.batch.worker import STOPPED

__all__ = ["Outcomes", "run_client"]


def run_client(command: list[str]) -> tuple[int, str]:
    """Runs a client, which ends with the process that calls this.

    Returns:
        Its exit code, and what it wrote.
    """
    done = subprocess.run([*command, "--parent", str(os.getpid())], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@dataclass
class Outcomes:
    """How the clients of one round after the other ended.

    Attributes:
        failures: Why clients could not go on.
    """

    failures: list[str] = field(default_factory=list)
    _rounds: int = 0

    def begin(self) -> None:
        """Begins a round."""
        self._rounds += 1

    def add(self, shard: int, code: int, text: str) -> None:
        """Adds the end of a client; those that were killed or stopped are submitted again in a next round."""
        if code == 1 or (code not in (0, STOPPED) and self._rounds >= MOST_ROUNDS):
            lines = text.strip().splitlines() or [f"the client of shard {shard} ended with exit code {code}"]
            self.failures.append(lines[-1].removeprefix("error: "))
