"""KServe's own agent, as it runs beside a server: it loads models, joins requests and logs them.

It listens at all addresses and asks port 8080: it and the server have to be in a network of their own.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from support.kube import need, program_file
from support.waiting import TIMEOUT_S

PROGRAM = "kserve-agent"
SERVER_PORT = 8080
"""Where it asks for models to be loaded, whatever it is told."""


class Agent:
    """A process of the agent.

    Attributes:
        port: Where it listens, and hands requests on to the server.
    """

    def __init__(self, log: Path, *flags: str, port: int = 9081, environment: Mapping[str, str] | None = None) -> None:
        """Starts it.

        Args:
            log: What it writes.
            flags: Its command line.
            port: Where it listens.
            environment: Further variables.

        Raises:
            Missing: If it is not built.
        """
        need(PROGRAM)
        self.port = port
        self._log = log
        variables = os.environ | {"SERVING_READINESS_PROBE": ""} | dict(environment or {})
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", str(program_file(PROGRAM)), f"--port={port}", *flags],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=variables,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        """The process, which ends with the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def output(self) -> str:
        """Everything that it wrote so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait_until_it_listens(self) -> Self:
        """Returns once it takes requests.

        Raises:
            AssertionError: If it ends, or does not in time.
        """
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            assert self._process.poll() is None, self.output
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)  # nothing announces that a foreign process listens

    def kill(self) -> None:
        """Ends it at once: in its own time it takes half a minute."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
