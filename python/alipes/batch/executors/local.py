"""The clients of a run as processes of this machine."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any, Final

from alipes.batch.executors.base import Watch, worker_command
from alipes.batch.folder import RunFolder, Start
from alipes.batch.worker import STOPPED

__all__ = ["LocalExecutor"]

_LOOK_S: Final = 0.25
_MOST_RESTARTS: Final = 3
"""How often the client of a shard is started again that was killed."""
_GRACE_S: Final = 30.0
_ERROR: Final = "error: "


@dataclass
class _Client:
    """A process, and what it writes."""

    shard: int
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    pidfd: int
    restarts: int = 0

    def reason(self) -> str:
        """Why it ended."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        messages = [line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)]
        code = self.process.returncode
        ended = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return (
            messages[-1]
            if messages
            else f"the client of shard {self.shard} {ended}: {lines[-1] if lines else 'no word'}"
        )


@dataclass
class LocalExecutor:
    """Starts a process for each shard, and another one where one is killed.

    Attributes:
        watch: Called again and again while they run.
        failures: Why clients ended that could not go on.
    """

    watch: Watch = lambda: None
    failures: list[str] = field(default_factory=list)

    def run(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> None:
        """Runs the clients of some shards to their end. What interrupts it stops them."""
        with ExitStack() as stack:
            clients: dict[int, _Client] = {}
            poll = select.poll()

            def begin(shard: int, restarts: int = 0) -> None:
                client = _started(folder, start, shard, restarts, stack)
                clients[client.pidfd] = client
                poll.register(client.pidfd, select.POLLIN)

            stack.callback(lambda: _stop(list(clients.values())))
            for shard in shards:
                begin(shard)
            while clients:
                for pidfd, _ in poll.poll(_LOOK_S * 1000):
                    poll.unregister(pidfd)
                    client = clients.pop(pidfd)
                    client.process.wait()
                    if client.process.returncode < 0 and client.restarts < _MOST_RESTARTS:
                        begin(client.shard, client.restarts + 1)
                    elif client.process.returncode not in (0, STOPPED):
                        self.failures.append(client.reason())
                self.watch()


def _started(folder: RunFolder, start: Start, shard: int, restarts: int, stack: ExitStack) -> _Client:
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the run
    stack.callback(errors.close)
    command = [*worker_command(folder, shard, start), "--parent", str(os.getpid())]
    process: subprocess.Popen[Any] = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
    )
    pidfd = os.pidfd_open(process.pid)
    stack.callback(os.close, pidfd)
    return _Client(shard, process, errors, pidfd, restarts)


def _stop(clients: Sequence[_Client]) -> None:
    """Has clients finish their pieces, and ends those that take too long."""
    for client in clients:
        client.process.send_signal(signal.SIGTERM)
    for client in clients:
        try:
            client.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            client.process.kill()
            client.process.wait()
