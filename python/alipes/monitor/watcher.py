"""The process behind a monitor, from the side of the script."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Watcher"]


class Watcher:
    """The process that looks at servers, with the methods that one of `multiprocessing` has."""

    def __init__(self, job: dict[str, object]) -> None:
        """Starts the process and sends it the servers to watch."""
        home = str(Path(__file__).parents[2])
        known = os.environ.get("PYTHONPATH", "")
        self._closed = False
        self._process = subprocess.Popen(
            (sys.executable, "-m", "alipes.monitor.child"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (home, known)))},
            start_new_session=True,  # Ctrl-C reaches the script alone
            text=True,
        )
        self._write(json.dumps(job))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exitcode(self) -> int | None:
        """Its exit status; `None` while it runs."""
        return self._process.poll()

    def lines(self) -> Iterator[str]:
        """What it says, until it says no more."""
        assert self._process.stdout is not None
        with self._process.stdout as output:
            yield from output

    def is_alive(self) -> bool:
        """Whether it runs.

        Raises:
            ValueError: If it is closed.
        """
        if self._closed:
            raise ValueError("process object is closed")
        return self._process.poll() is None

    def join(self, timeout: float | None = None) -> None:
        """Tells it to stop and waits for its end, so long at most."""
        self._write("stop")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
            self._let_go()

    def terminate(self) -> None:
        """Insists."""
        self._process.terminate()

    def kill(self) -> None:
        """Leaves it no choice."""
        self._process.kill()

    def close(self) -> None:
        """Lets go of it."""
        self._let_go()
        self._closed = True

    def _let_go(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended
            self._process.stdin.close()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            return
        with contextlib.suppress(BrokenPipeError):  # it has ended, and its output says why
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
