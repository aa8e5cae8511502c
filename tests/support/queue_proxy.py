"""Knative's own queue-proxy, as it runs beside each server: it limits requests in flight, probes, and drains.

It listens at all addresses, at ports of its own choice: it has to be in a network of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

from support.kube import need, program_file
from support.waiting import TIMEOUT_S, until

PROGRAM = "kn-queue"
PORT = 8012
_ADMIN_PORT = 8022
_PROBE = {"K-Network-Probe": "queue", "User-Agent": "kube-probe/1"}
"""By these headers Kubernetes asks whether a pod is ready."""
# As our runtimes have it: without a period it would ask by itself until the answer is yes.
_PERIODS = {"periodSeconds": 1, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3}


class QueueProxy:
    """A process of the queue-proxy in front of a server."""

    def __init__(self, log: Path, server_port: int, probe: Mapping[str, Any], concurrency: int = 0) -> None:
        """Starts it.

        Args:
            log: What it writes.
            server_port: Where it sends requests.
            probe: A probe of Kubernetes, by which it knows whether the server is ready.
            concurrency: Most requests in the server at a time; 0 is no limit.

        Raises:
            Missing: If it is not built.
        """
        need(PROGRAM)
        self._log = log
        settings = {
            "CONTAINER_CONCURRENCY": str(concurrency),
            "QUEUE_SERVING_PORT": str(PORT),
            "QUEUE_SERVING_TLS_PORT": "8112",
            "USER_PORT": str(server_port),
            "REVISION_TIMEOUT_SECONDS": "120",
            "SERVING_READINESS_PROBE": json.dumps({**probe, **_PERIODS}),
            "SERVING_LOGGING_CONFIG": "",
            "SERVING_LOGGING_LEVEL": "info",
            "SERVING_NAMESPACE": "default",
            "SERVING_CONFIGURATION": "service",
            "SERVING_REVISION": "service-00001",
            "SERVING_POD": "pod",
            "SERVING_POD_IP": "127.0.0.1",
        }
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", str(program_file(PROGRAM))],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=os.environ | settings,
                start_new_session=True,
            )

    @property
    def address(self) -> str:
        """Where clients send requests."""
        return f"127.0.0.1:{PORT}"

    def __enter__(self) -> Self:
        """The process, once it answers whether the server is ready; it ends with the block."""
        until(lambda: self.is_ready() is not None, "the queue-proxy listens")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # in its own time it takes half a minute
        self._process.wait()

    def is_ready(self) -> bool | None:
        """Whether the server behind it is ready; nothing while it does not listen itself."""
        assert self._process.poll() is None, self._log.read_text(errors="replace")
        try:
            status, _ = _get(PORT, "/", _PROBE)
        except OSError:
            return None
        return status == 200

    def begin_drain(self) -> None:
        """Tells it that its pod ends, as Kubernetes does."""
        self._process.send_signal(signal.SIGTERM)

    def await_drain(self) -> int:
        """Returns once the server behind it may be told to end: for half a minute no request came. The status."""
        status, _ = _get(_ADMIN_PORT, "/wait-for-drain", {})
        return status

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait(TIMEOUT_S)


def _get(port: int, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers=dict(headers))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
