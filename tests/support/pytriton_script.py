"""A script of PyTriton that serves, run as it stands by `python -m alipes.compat pytriton`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import psutil

from support.ports import free_ports
from support.pytriton_facts import OURS
from support.waiting import TIMEOUT_S, until

__all__ = ["EXAMPLES", "PRINTED", "ServingScript", "run_client"]

_STARTS: Final = 5
"""Most starts of a script, whose ports are free when they are looked for, and may be taken before it listens."""

EXAMPLES: Final = Path(__file__).parents[1] / "scripts" / "pytriton" / "examples"


_PARAMETERS: Final = [
    [["header1", "value"], ["header_2", "7"], ["number", 5], ["text", "t"], ["truth", True]],
    ["said", "x"],
]

PRINTED: Final = {
    "add_sub": "[[4.0, 6.0], [12.0, 18.0], [4.5, 6.25], [12.5, 18.25]]",
    "identity": "the same",
    "linear": "Seen [4]",
    "multi_layer": "(4, 6)",
    "several_models": "[7.0, 3.0, 21.0, 8.0, 7.0, 7.0]",
    "headers_and_parameters": f"{json.dumps(_PARAMETERS)} 5",
    "streams": "[[0, 1, 2], [[[0], [0]], [[1], [1]]], [0, 1, 2], [[[0], [0]], [[1], [1]]], 3, True, [], [0, 1, 2]]",
}
"""What the client's script of each example prints; it compares arrays itself."""


class ServingScript:
    """A process that runs a script. A context manager; what is left of it is ended."""

    def __init__(
        self,
        script: Path,
        folder: Path,
        *,
        python: str = sys.executable,
        way: tuple[str, ...] = OURS,
        environment: Mapping[str, str] | None = None,
        serves: bool = True,
    ) -> None:
        """Starts it, with ports that are free and PyTriton's home in a folder.

        With `serves` it has a server of its own, which is waited for.

        Attributes:
            http: Address of its server over HTTP.
            grpc: Over gRPC.
        """
        self._serves = serves
        self._command, self._folder = [python, *way, str(script)], folder
        self._environment = {**os.environ, **(environment or {})}
        self._start()

    def _start(self) -> None:
        http, grpc, metrics = free_ports(3)
        self.http, self.grpc = f"http://localhost:{http}", f"grpc://localhost:{grpc}"
        ports = {"HTTP": http, "GRPC": grpc, "METRICS": metrics}
        settings = {f"PYTRITON_TRITON_CONFIG_{name}_PORT": str(port) for name, port in ports.items()}
        self._port, self.home = grpc, self._folder / f"home-{grpc}"
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._folder,
            env={"PYTRITON_HOME": str(self.home), **self._environment, **settings},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        """Waits for its server; where another process took a port that was free, it is started with others."""
        for _ in range(_STARTS if self._serves else 0):
            until(lambda: self.process.poll() is not None or self._listens())
            if self.process.poll() is None:
                break
            output, _ = self.process.communicate()
            assert "in use" in output, output
            self._start()
        return self

    def _listens(self) -> bool:
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(self.process.pid).children(recursive=True)
            found = [one for process in family for one in process.net_connections("tcp")]
            return any(one.status == psutil.CONN_LISTEN and one.laddr.port == self._port for one in found)
        return False

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        if self.process.stdout is not None:
            self.process.communicate()

    def interrupt(self) -> str:
        """Presses Ctrl-C for it; gives what it wrote, once it has ended by itself."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.ended()

    def ended(self) -> str:
        """What it wrote, once it has ended by itself."""
        output, _ = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0, output
        return output


def run_client(script: Path, url: str, *, python: str = sys.executable, way: tuple[str, ...] = OURS) -> str:
    """What a client's script prints; ours gives no warning."""
    command = [python, "-W", "error" if way else "ignore", *way, str(script), url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()
