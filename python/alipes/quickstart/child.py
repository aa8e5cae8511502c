"""The server as a child process: started on free ports, watched until ready, and gone when its block ends."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from alipes.client import Client
from alipes.errors import ServerStartError
from alipes.process_folder import ProcessFolder
from alipes.types import ModelState

READY_TIMEOUT_S: Final = 60.0
"""Far beyond the fraction of a second that a start takes: a cold disk must not look like a failure."""

EXIT_TIMEOUT_S: Final = 10
"""The exit time-out of the server, also passed to it as a flag."""

_POLL_S: Final = 0.02
_TAIL_LINES: Final = 12
_PR_SET_PDEATHSIG: Final = 1

# The lines by which the server announces its endpoints; scripts read them too, so they are as stable as an interface.
_STARTED: Final = re.compile(rb'"Started (HTTPService|GRPCInferenceService|Metrics Service) at ([^"\s]+)"')


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the three endpoints are, each as `host:port`."""

    http: str
    grpc: str
    metrics: str


class ServerProcess:
    """`alipes serve` on a repository. A context manager: after its block the process has ended and its log is gone."""

    def __init__(self, repository: Path) -> None:
        """Starts nothing yet."""
        self._repository = repository
        self._folder: ProcessFolder | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self.log_path = Path()

    def __enter__(self) -> Self:
        """Starts the process and does not wait for it."""
        self._folder = ProcessFolder("quickstart")
        self.log_path = self._folder.path / "server.log"
        self._started = time.perf_counter()
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                serve_command(self._repository),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A session of its own: Ctrl-C reaches us alone, and we stop the server in our own order.
                start_new_session=True,
                # One system call between fork and exec; the tour starts no thread before this.
                preexec_fn=partial(_end_with_parent, ctypes.CDLL(None), os.getpid()),  # noqa: PLW1509
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops the process."""
        self.stop()
        if self._folder is not None:
            self._folder.close()

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._running().pid

    @property
    def age_s(self) -> float:
        """Seconds since the process was started."""
        return time.perf_counter() - self._started

    def wait_ready(self, model: str) -> Addresses:
        """Returns once the model answers.

        Raises:
            ServerStartError: If the process ends, the model cannot load, or neither happens in `READY_TIMEOUT_S`.
        """
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            addresses = announced(self.log_path.read_bytes())
            if addresses is not None and _model_ready(addresses.http, model):
                return addresses
            if (status := self._running().poll()) is not None:
                raise ServerStartError(f"the server ended with exit status {status} before it was ready")
            time.sleep(_POLL_S)
        raise ServerStartError(f"the server was not ready after {READY_TIMEOUT_S:.0f} seconds")

    def wait(self) -> int:
        """Waits until the server ends by itself; returns its exit status."""
        return self._running().wait()

    def log_tail(self) -> str:
        """The last lines of the server's output."""
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])

    def stop(self) -> int:
        """Asks the server to finish and leave, insists after `EXIT_TIMEOUT_S`, and returns its exit status."""
        process = self._running()
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            return process.wait(EXIT_TIMEOUT_S + 2)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerStartError("the server was not started: use it in a `with` block")
        return self._process


def serve_command(repository: Path) -> list[str]:
    """The command line: this interpreter's alipes, for this machine alone, on ports that the system picks."""
    flags = [
        f"--{protocol}-{what}" for protocol in ("http", "grpc", "metrics") for what in ("address=127.0.0.1", "port=0")
    ]
    return [sys.executable, "-m", "alipes", "serve", str(repository), *flags, f"--exit-timeout-secs={EXIT_TIMEOUT_S}"]


def announced(log: bytes) -> Addresses | None:
    """The addresses that a server's log announces; `None` until all three are there."""
    found = {protocol: address.decode() for protocol, address in _STARTED.findall(log)}
    if len(found) < 3:
        return None
    return Addresses(found[b"HTTPService"], found[b"GRPCInferenceService"], found[b"Metrics Service"])


def _model_ready(address: str, model: str) -> bool:
    """Whether the model answers.

    Raises:
        ServerStartError: If its load has failed, with the reason that the repository index gives.
    """
    with Client(f"http://{address}") as client:
        if client.is_model_ready(model):
            return True
        failed = [entry for entry in client.models() if entry.name == model and entry.state is ModelState.UNAVAILABLE]
    if failed:
        raise ServerStartError(f"the model '{model}' could not be loaded: {failed[0].reason}")
    return False


def _end_with_parent(libc: ctypes.CDLL, parent: int) -> None:
    """In the child: asks the kernel for SIGTERM when the parent dies, so that a killed parent leaves nothing behind."""
    if sys.platform == "linux":
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the line above took effect
            os._exit(1)
