"""Workers that are killed, stopped or starved."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path
from typing import Final

import psutil

from support.processes import workers_of
from support.soak.fault import Scene
from support.soak.models import VETERAN

# Shorter and longer than the server waits for a sign of life.
_STOPS_S: Final = (0.05, 0.5, 2.5)
# What `ps` shows of a process ends after so many characters.
_LONGEST_NAME: Final = 15


def kill(scene: Scene) -> None:
    """Ends a worker at once, as the system does when it is out of memory, or with a core dump."""
    if (worker := _worker(scene)) is not None:
        _signal(worker, scene.dice.choice((signal.SIGKILL, signal.SIGABRT, signal.SIGTERM)))


def stop(scene: Scene) -> None:
    """Stops a worker for a while."""
    if (worker := _worker(scene)) is not None:
        _signal(worker, signal.SIGSTOP)
        seconds = scene.dice.choice(_STOPS_S)
        scene.beside(lambda: _go_on(worker, seconds))


def starve(scene: Scene) -> None:
    """Takes a worker's share of the processors away, for good."""
    if (worker := _worker(scene)) is not None:
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.nice(19)


def _go_on(worker: psutil.Process, after_s: float) -> None:
    time.sleep(after_s)
    _signal(worker, signal.SIGCONT)


def _signal(worker: psutil.Process, number: int) -> None:
    # It may end by itself meanwhile.
    with contextlib.suppress(psutil.NoSuchProcess):
        worker.send_signal(number)


def _worker(scene: Scene) -> psutil.Process | None:
    """One of the workers that may be harmed, if there is any."""
    mine = [worker for worker in workers_of(scene.server) if not _name(worker).startswith(_named(VETERAN))]
    return scene.dice.choice(mine) if mine else None


def _named(model: str) -> str:
    return f"alipes:{model}"[:_LONGEST_NAME]


def _name(worker: psutil.Process) -> str:
    try:
        return Path(f"/proc/{worker.pid}/comm").read_text()
    except OSError:
        return ""
