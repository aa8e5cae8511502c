"""All faults, one after the other for as long as a soak lasts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final, Self, TextIO

from support.soak import client_faults, load_faults, operator_faults, wire_faults, worker_faults
from support.soak.fault import Fault, Scene
from support.soak.tally import Tally

FILE: Final = "faults.log"

# Each happens once in a round, in an order of its own, so that an hour has as many of each kind as the next.
FAULTS: Final[tuple[Fault, ...]] = (
    worker_faults.kill,
    worker_faults.stop,
    worker_faults.starve,
    load_faults.reload,
    load_faults.come_and_go,
    load_faults.fail_to_load,
    load_faults.conjure,
    load_faults.load_nothing,
    client_faults.vanish,
    client_faults.cancel,
    client_faults.withdraw,
    client_faults.forget,
    client_faults.idle,
    client_faults.read_nothing,
    wire_faults.flood,
    wire_faults.connect_many,
    wire_faults.bomb,
    wire_faults.damage,
    wire_faults.damage_calls,
    wire_faults.cut,
    operator_faults.hang_up,
    operator_faults.make_verbose,
    operator_faults.trace,
)

_LONGEST_PAUSE_S: Final = 1.0


class Faults:
    """Rounds of faults, on a thread, while the context lasts."""

    def __init__(self, scene: Scene, tally: Tally, folder: Path, *, calm: bool) -> None:
        """Begins nothing yet. The faults are written to a file of the folder as they begin; a calm soak has none."""
        self._faults = () if calm else FAULTS
        self._scene = scene
        self._tally = tally
        self._file: TextIO = (folder / FILE).open("a", encoding="utf-8")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._begun_s = time.monotonic()
        self.done: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._scene.over.set()
        self._thread.join()
        if not self._scene.wait():
            self._tally.wrong("a fault does not end")
        self._file.close()

    def _run(self) -> None:
        while self._faults and not self._scene.over.is_set():
            for fault in self._scene.dice.sample(self._faults, len(self._faults)):
                self._do(fault)
                if self._scene.pause(_LONGEST_PAUSE_S):
                    return

    def _do(self, fault: Fault) -> None:
        name = fault.__name__
        print(f"{time.monotonic() - self._begun_s:.1f} {name}", file=self._file, flush=True)
        try:
            fault(self._scene)
        except Exception as error:
            self._tally.wrong(f"{name}: {type(error).__name__}: {error}")
        self.done[name] += 1
