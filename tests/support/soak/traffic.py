"""Honest traffic from a process of its own, whose interpreter the faults do not hold up."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self, cast

from support.server import ServerProcess
from support.soak.callers import CALLERS, Call
from support.soak.tally import Tally

# Between two requests of a caller: most of the machine stays with the server and the faults.
_LONGEST_PAUSE_S: Final = 0.2
# Longer than any client waits for an answer.
_END_S: Final = 150.0


class Addresses(NamedTuple):
    """Where a server of another process listens: what clients look at of a `ServerProcess`."""

    http: str
    grpc: str
    metrics: str


class Traffic:
    """All callers, for as long as the context lasts."""

    def __init__(self, server: ServerProcess, seed: int) -> None:
        """Starts the process."""
        command = [sys.executable, "-m", "support.soak.traffic", server.http, server.grpc, server.metrics, str(seed)]
        self._process = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # a Ctrl-C of the person at the keyboard is not its own
        )
        self.left: tuple[int, int, list[str]] = (0, 0, [])
        """What had been counted when the context ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        output, _ = self._process.communicate()
        if output.strip():
            self.left = tuple(json.loads(output.splitlines()[-1]))

    def take(self) -> tuple[int, int, list[str]]:
        """Answers, refusals and what was wrong since the last call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("take", file=self._process.stdin, flush=True)
        answers, refusals, wrong = json.loads(self._process.stdout.readline())
        return answers, refusals, wrong


class _Work:
    """The work of the process."""

    def __init__(self, addresses: Addresses, seed: str) -> None:
        # Its clients look at the addresses alone.
        self._server = cast(ServerProcess, addresses)
        self._tally = Tally()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(call, random.Random(f"{seed} {number}")), daemon=True)
            for number, call in enumerate(CALLERS)
        ]

    def run(self) -> None:
        """Prints the tally once for each line of its input, and at its end."""
        for thread in self._threads:
            thread.start()
        for _ in sys.stdin:
            print(json.dumps(self._tally.take()), flush=True)
        self._over.set()
        for thread in self._threads:
            thread.join(_END_S)
            if thread.is_alive():
                self._tally.wrong("a caller waits for an answer that does not come")
        print(json.dumps(self._tally.take()), flush=True)

    def _run(self, call: Call, dice: random.Random) -> None:
        def pause() -> bool:
            return self._over.wait(dice.uniform(0, _LONGEST_PAUSE_S))

        while not self._over.is_set():
            try:
                call(self._server, self._tally, dice, pause)
            except Exception as error:
                self._tally.wrong(f"a caller failed: {type(error).__name__}: {error}")
            pause()


if __name__ == "__main__":
    _Work(Addresses(*sys.argv[1:4]), sys.argv[4]).run()
