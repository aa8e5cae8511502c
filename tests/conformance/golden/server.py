"""The server under test, over a copy of a recorded repository."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.server import ServerProcess
from support.waiting import TIMEOUT_S

from .exchange import http
from .scenarios import MODELS

# As the recorded server did: its release, and a GPU that is absent is an error.
_AS_RECORDED = ("--triton-release=2.51", "--gpu-fallback=refuse")


def copy_repository(name: str, folder: Path) -> Path:
    """A copy of a recorded repository, with the empty version folders that the recording had."""
    left_out = shutil.ignore_patterns(".keep", "__pycache__")
    return Path(shutil.copytree(MODELS / name, folder / name, ignore=left_out))


def launch(repository: Path, args: Sequence[str]) -> ServerProcess:
    """Starts a server and does not wait for it."""
    environment = {"GOLDEN_HOLD": str(_hold(repository))}
    return ServerProcess(repository, *_AS_RECORDED, *args, environment=environment, command="tritonserver")


@contextmanager
def holding(repository: Path) -> Iterator[None]:
    """Models that sleep for a requested time begin to do so when this is left."""
    hold = _hold(repository)
    hold.mkdir()
    try:
        yield
    finally:
        # At once, whatever models are noting in it.
        gone = hold.rename(hold.with_name(f"{hold.name} {time.monotonic_ns()}"))
        shutil.rmtree(gone, ignore_errors=True)


def under_way(server: ServerProcess, repository: Path, model: str) -> int:
    """Grows with every request for a model while others are held: those that wait or run, and all that began to."""
    begun = len(list(_hold(repository).iterdir()))
    explanation = _explanation(server, model)
    if explanation is None:
        return begun
    running = sum(worker["requests"] for worker in explanation.get("workers", []))
    return begun + explanation["queue"]["waiting"] + running


def is_about_to_be_taken(server: ServerProcess, model: str) -> bool:
    """Whether a batch is due that a worker has no more than to fetch: who comes now would join it."""
    explanation = _explanation(server, model)
    if explanation is None or not explanation.get("workers"):
        return False
    following = explanation["queue"].get("next")
    is_due = following is not None and following["due_in_us"] == 0
    return is_due and not any(worker["requests"] for worker in explanation["workers"])


def _explanation(server: ServerProcess, model: str) -> dict[str, Any] | None:
    status, _, body = http.send(server.http, {"method": "GET", "path": f"/v2/models/{model}/explain"})
    return json.loads(body)["models"][0] if status == 200 else None


def _hold(repository: Path) -> Path:
    return repository.with_name(f"{repository.name} hold")


@contextmanager
def running(repository: Path, args: Sequence[str], awaited: str) -> Iterator[ServerProcess]:
    """A server that is ``ready`` or ``live``, or listens on its ``port``, for as long as the context lasts.

    Then an operator's signal stops it.

    Raises:
        ServerDidNotStart: If it ends instead.
        TimeoutError: If it does not get there.
    """
    with launch(repository, args) as server:
        _wait_until(awaited, server.wait_until_started())
        yield server
        server.stop()


def _wait_until(awaited: str, server: ServerProcess) -> None:
    if awaited == "port":  # health itself may be restricted
        return
    deadline = time.monotonic() + TIMEOUT_S
    while http.send(server.http, {"method": "GET", "path": f"/v2/health/{awaited}"})[0] != 200:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not {awaited}:\n{server.output}")
        time.sleep(0.02)
