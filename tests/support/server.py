"""A real server process for tests: started on ports that the system picks, read back from its log."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Literal, Self

from support.waiting import TIMEOUT_S

_SERVICES = {"http": "HTTPService", "grpc": "GRPCInferenceService", "metrics": "Metrics Service"}
_PORTS = ("--http-port=0", "--grpc-port=0", "--metrics-port=0")
_ADDRESSES = ("--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1")


class ServerDidNotStart(Exception):
    """The process ended before it answered."""

    def __init__(self, exit_code: int, output: str) -> None:
        super().__init__(f"exit code {exit_code}\n{output}")
        self.exit_code = exit_code
        self.output = output


class ServerProcess:
    """`alipes serve` as a process of its own."""

    def __init__(
        self,
        repository: Path | str,
        *arguments: str,
        environment: dict[str, str] | None = None,
        folder: Path | None = None,
        launcher: tuple[str, ...] = (),
        command: Literal["serve", "tritonserver", "activate"] = "serve",
        ports: tuple[str, ...] = _PORTS,
    ) -> None:
        """Starts the process, in a folder and by a launcher, and does not wait; see `wait_until_started`.

        With `tritonserver` the command line is Triton's, with `activate` the first connection starts the server.
        Without `ports` they are the server's to choose.
        """
        words = {
            "serve": ["serve", str(repository)],
            "tritonserver": ["tritonserver", f"--model-repository={repository}"],
            "activate": ["activate", "--", "serve", str(repository)],
        }
        serve = [sys.executable, "-m", "alipes", *words[command], *_ADDRESSES, *ports]
        self.process = subprocess.Popen(
            [*launcher, *serve, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | (environment or {}),
            cwd=folder,
            start_new_session=True,  # a Ctrl-C of the person at the keyboard is not the test's
        )
        self._lines: list[str] = []
        self._addresses: dict[str, str] = {}
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def output(self) -> str:
        """Everything that the process wrote so far."""
        with self._changed:
            return "".join(self._lines)

    @property
    def http(self) -> str:
        """Address of the HTTP endpoint, ``host:port``."""
        return self._address("http")

    @property
    def grpc(self) -> str:
        """Address of the gRPC endpoint, ``host:port``."""
        return self._address("grpc")

    @property
    def metrics(self) -> str:
        """Address of the metrics endpoint, ``host:port``."""
        return self._address("metrics")

    def wait_until_started(self) -> Self:
        """Returns once the server accepts requests on every endpoint that it offers.

        Raises:
            ServerDidNotStart: If the process ended instead.
        """
        # The line of the metrics endpoint is the last one; without metrics another one is.
        self.wait_for_output(r"Started (Metrics Service|HTTPService|GRPCInferenceService) at ")
        return self

    def wait_for_output(self, pattern: str, timeout_s: float = TIMEOUT_S) -> re.Match[str]:
        """The first match of a regular expression in the output, as soon as it is there.

        Raises:
            ServerDidNotStart: If the process ended without writing it.
            TimeoutError: If the time is up.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                found = re.search(pattern, "".join(self._lines))
                if found:
                    return found
                if self._ended:
                    raise ServerDidNotStart(self.process.wait(), "".join(self._lines))
                if not self._changed.wait(deadline - time.monotonic()):
                    raise TimeoutError(f"no {pattern!r} in:\n{''.join(self._lines)}")

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def wait(self, timeout_s: float = TIMEOUT_S) -> int:
        """The exit code, once the process has ended and its output is read."""
        code = self.process.wait(timeout_s)
        self._reader.join(timeout_s)
        return code

    def stop(self) -> int:
        """Asks the server to end, as an operator would, and returns the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Makes sure that nothing is left, of what models have started either."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _address(self, endpoint: str) -> str:
        # The output of a server that runs for hours is long.
        if endpoint not in self._addresses:
            listens = rf"(?:Started {_SERVICES[endpoint]}|{endpoint} waits for connections) at ([^\"\s]+)"
            self._addresses[endpoint] = self.wait_for_output(listens)[1]
        return self._addresses[endpoint]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self._lines.append(line.decode(errors="replace"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
