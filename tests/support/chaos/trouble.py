"""Trouble for the workers: they are killed, stopped, starved of processor time, flooded."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

import psutil

from support.chaos.load import Load
from support.processes import workers_of
from support.server import ServerProcess

# A stop is either shorter or longer than what an execution may take.
_STOPS_S = (0.05, 0.5, 2.5)
_PAUSES_S = (0.05, 0.6)
_STARVED_S = 1.0

# Keeps a core busy for a while, so that other processes get less of it.
_SPIN = f"import time\nend = time.monotonic() + {_STARVED_S}\nwhile time.monotonic() < end: pass"


class Trouble:
    """One deed after the other, as the dice say."""

    def __init__(self, server: ServerProcess, load: Load, seed: int) -> None:
        self._server = server
        self._load = load
        self._dice = random.Random(f"{seed} trouble")
        self._helpers: list[threading.Thread] = []
        self.done: Counter[str] = Counter()

    def make(self, seconds: float) -> None:
        """Troubles the server for so long, and lets go of all that it holds."""
        deeds: dict[Callable[[], None], int] = {self._kill: 4, self._stop: 3, self._starve: 1, self._flood: 2}
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            (deed,) = self._dice.choices([*deeds], [*deeds.values()])
            with contextlib.suppress(psutil.NoSuchProcess):
                deed()
            self.done[deed.__name__.strip("_")] += 1
            time.sleep(self._dice.uniform(*_PAUSES_S))
        for helper in self._helpers:
            helper.join()

    def _worker(self) -> psutil.Process:
        workers = workers_of(self._server)
        if not workers:
            raise psutil.NoSuchProcess(0)
        return self._dice.choice(workers)

    def _kill(self) -> None:
        self._worker().send_signal(self._dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGABRT)))

    def _stop(self) -> None:
        worker, seconds = self._worker(), self._dice.choice(_STOPS_S)

        def go_on() -> None:
            time.sleep(seconds)
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.send_signal(signal.SIGCONT)

        worker.send_signal(signal.SIGSTOP)
        self._beside(go_on)

    def _starve(self) -> None:
        worker = self._worker()
        worker.nice(19)
        self._beside(lambda: subprocess.run([sys.executable, "-S", "-c", _SPIN], check=True))

    def _flood(self) -> None:
        self._beside(lambda: self._load.flood(random.Random(self._dice.random())))

    def _beside(self, work: Callable[[], object]) -> None:
        helper = threading.Thread(target=work, daemon=True)
        helper.start()
        self._helpers.append(helper)
