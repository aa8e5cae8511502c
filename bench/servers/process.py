"""Processes that the bench starts: each in a session of its own, so that it and all its children end together."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.paths import WORK

STOP_TIMEOUT_S = 10.0
#: Whoever sets this for the bench does not want servers that compile their Python at each start, as no user's does.
UNINHERITED = "PYTHONDONTWRITEBYTECODE"
LOG_TAIL_CHARACTERS = 2000


class StartFailed(Exception):
    """A server did not become ready; the message ends with what it printed."""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nothing listens on, each another one."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != UNINHERITED}


class Process:
    """A running server, stopped when the `with` block ends."""

    def __init__(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        """Starts ``command``; what it prints goes to a log file, standard output also where `read_line` asks."""
        self.name = name
        log = WORK / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        with log.open("wb") as sink:
            self._child = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**_inherited(), **(environment or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id of the server itself."""
        return self._child.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def wait_until(self, ready: Callable[[], bool], timeout_s: float = 60.0, pause_s: float = 0.02) -> None:
        """Waits for ``ready`` to say yes.

        Raises:
            StartFailed: If the process ends or the time is up before.
        """
        end = time.monotonic() + timeout_s
        while not ready():
            if self._child.poll() is not None:
                raise StartFailed(f"{self.name} ended with status {self._child.returncode}:\n{self.log_tail()}")
            if time.monotonic() > end:
                raise StartFailed(f"{self.name} is not ready after {timeout_s:.0f} s:\n{self.log_tail()}")
            time.sleep(pause_s)

    def first_line(self) -> str:
        """The first line that it prints, once it is complete."""
        self.wait_until(lambda: b"\n" in self.log.read_bytes())
        return self.log.read_text().partition("\n")[0]

    def log_tail(self) -> str:
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]

    def cpu_seconds(self) -> float:
        """Processor time that the server and its children have used so far, also those that ended."""
        import psutil

        server = psutil.Process(self.pid)
        times = [part.cpu_times() for part in [server, *server.children(recursive=True)]]
        return float(sum(time.user + time.system + time.children_user + time.children_system for time in times))

    def resident_bytes(self) -> int:
        """Resident memory of the server and its children."""
        import psutil

        server = psutil.Process(self.pid)
        return sum(part.memory_info().rss for part in [server, *server.children(recursive=True)])

    def stop(self) -> None:
        """Ends the server and its children: politely, then without asking."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(STOP_TIMEOUT_S)
        self._signal(signal.SIGKILL)
        self._child.wait()

    def _signal(self, number: signal.Signals) -> None:
        # The session's group outlives its leader for as long as a child does.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
