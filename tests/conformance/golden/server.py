"""The server under test: a real process on ports that the system hands out, over a copy of a repository."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .exchange.http import Address, send
from .later import LATER_MODELS
from .scenarios import MODELS

_HOST = "127.0.0.1"
_START_S = 60
_STOP_S = 30
_STARTED = re.compile(r"Started (HTTPService|GRPCInferenceService) at \S*:(\d+)")


@dataclass(frozen=True)
class Server:
    """A running server: where its two doors are."""

    http: Address
    grpc: Address


def copy_repository(name: str, folder: Path) -> Path:
    """A copy of a recorded repository without the models that are left for later."""
    left_out = shutil.ignore_patterns(".keep", *LATER_MODELS.get(name, ()))
    return Path(shutil.copytree(MODELS / name, folder / name, ignore=left_out))


@contextmanager
def running(repository: Path, args: Sequence[str], log: Path) -> Iterator[Server]:
    """A server that is ready, for as long as the context lasts.

    Raises:
        RuntimeError: If it ends or does not get ready in time; the text holds the end of its log.
    """
    process = launch(repository, args, log, ports=("0", "0", "0"))
    try:
        yield _wait_until_ready(process, log)
    finally:
        stop(process)


def launch(repository: Path, args: Sequence[str], log: Path, ports: tuple[str, str, str]) -> subprocess.Popen[bytes]:
    """Starts a server on ``ports`` for HTTP, gRPC and metrics and does not wait for it; its output goes to ``log``."""
    command = [sys.executable, "-m", "alipes", "serve", str(repository)]
    for door, port in zip(("http", "grpc", "metrics"), ports, strict=True):
        command += [f"--{door}-address={_HOST}", f"--{door}-port={port}"]
    # As the recorded server did: a model that cannot load ends the start, and a GPU that is absent is an error.
    command += ["--gpu-fallback=refuse", "--exit-on-error=true", *args]
    with log.open("wb") as output:
        # A session of its own, so that whatever it started can be ended with it.
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a server as an operator does; one that does not end in time is killed with all it started."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> Server:
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        ports = {door: int(port) for door, port in _STARTED.findall(log.read_text(errors="replace"))}
        if len(ports) == 2 and _is_ready((_HOST, ports["HTTPService"])):
            return Server((_HOST, ports["HTTPService"]), (_HOST, ports["GRPCInferenceService"]))
        time.sleep(0.02)
    raise RuntimeError(f"the server did not get ready: ...{log.read_text(errors='replace')[-2000:]}")


def _is_ready(address: Address) -> bool:
    try:
        status, _, _ = send(address, {"method": "GET", "path": "/v2/health/ready"})
    except (OSError, http.client.HTTPException):
        return False
    return status == 200
