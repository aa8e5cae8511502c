"""A variant's server: a process that ends with the block, with the port that it found and the CPU that it took."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

import psutil

# What alipes, uvicorn and flask say once they listen. Importing PyTorch takes a while on a busy machine.
_LISTENS = re.compile(r"(?:HTTPService at |[Rr]unning on http://)127\.0\.0\.1:(\d+)")
_START_S = 120.0
_STOP_S = 20.0
_POLL_S = 0.05


class StartFailed(Exception):
    """A server ended, or did not listen in time; the message ends with what it wrote."""


class Served:
    """A running server.

    Attributes:
        port: Where it takes HTTP on this machine.
    """

    def __init__(
        self, command: tuple[str, ...], folder: Path, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Starts it.

        Args:
            command: What starts it.
            folder: Where it is started.
            log: The file for what it writes.
            environment: Its environment, if not this process's.

        Raises:
            StartFailed: If it does not come to listen.
        """
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT
            )
        try:
            self.port = self._listening(log)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        """The server, for a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends it."""
        self.stop()

    def cpu_s(self) -> float:
        """CPU that the server and its workers took so far, in seconds."""
        server = psutil.Process(self._process.pid)
        times = [process.cpu_times() for process in (server, *server.children(recursive=True))]
        return float(sum(one.user + one.system for one in times))

    def statistics(self, model: str) -> dict[str, Any]:
        """What the server counts of a model, as `/v2/models/<model>/stats` says it."""
        with urlopen(f"http://127.0.0.1:{self.port}/v2/models/{model}/stats") as response:
            counted: dict[str, Any] = json.load(response)["model_stats"][0]
            return counted

    def stop(self) -> None:
        """Ends it, and waits until it has ended."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listening(self, log: Path) -> int:
        deadline_s = time.monotonic() + _START_S
        while time.monotonic() < deadline_s:
            ended = self._process.poll() is not None
            written = log.read_text(errors="replace")
            if found := _LISTENS.search(written):
                return int(found[1])
            if ended:
                raise StartFailed(f"{' '.join(self._process.args)} ended:\n{written[-2000:]}")  # type: ignore[arg-type]
            time.sleep(_POLL_S)
        raise StartFailed(f"nothing listens after {_START_S:.0f} s:\n{log.read_text(errors='replace')[-2000:]}")
