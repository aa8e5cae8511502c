"""KServe's own router, which answers the requests of a graph.

It listens at port 8080 of all addresses: it has to be in a network of its own.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from support.kube import need, program_file
from support.waiting import TIMEOUT_S

PROGRAM = "kserve-router"
PORT = 8080
"""Where it listens, whatever it is told."""


class Router:
    """A process of the router."""

    def __init__(self, log: Path, spec: Mapping[str, Any], headers: str = "") -> None:
        """Starts it.

        Args:
            log: What it writes.
            spec: The specification of a graph.
            headers: Patterns of headers that steps see, separated by commas.

        Raises:
            Missing: If it is not built.
        """
        need(PROGRAM)
        self._log = log
        variables = os.environ | ({"PROPAGATE_HEADERS": headers} if headers else {})
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", str(program_file(PROGRAM)), "--graph-json", json.dumps(spec)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=variables,
                start_new_session=True,
            )

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"127.0.0.1:{PORT}"

    def __enter__(self) -> Self:
        """The process, once it takes requests; it ends with the block.

        Raises:
            AssertionError: If it ends, or does not listen in time.
        """
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            assert self._process.poll() is None, self._log.read_text(errors="replace")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", PORT)) == 0:
                    return self
            assert time.monotonic() < deadline, self._log.read_text(errors="replace")
            time.sleep(0.05)  # nothing announces that a foreign process listens

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # in its own time it takes half a minute
        self._process.wait()
