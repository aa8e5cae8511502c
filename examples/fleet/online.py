"""The second figure's measurements: frames that arrive once a second, at one inference rate after the other."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from alipes import batch
from models import Way
from strain import RATE_HZ, Series


@dataclass(frozen=True)
class OnlineCell:
    """One stream.

    Attributes:
        way: How it went through the network.
        latencies_s: From the arrival of each frame to its answers.
    """

    way: Way
    latencies_s: list[float]


class Detector:
    """Has frames of one second arrive in a folder, one each period: the square wave. A context manager."""

    def __init__(self, folder: Path, series: Series, period_s: float) -> None:
        """Makes the folder."""
        self._folder, self._series, self._period_s = folder, series, period_s
        folder.mkdir(parents=True)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Path:
        """The first frame arrives at once."""
        self._thread.start()
        return self._folder

    def __exit__(self, *_: object) -> None:
        """No further frame arrives."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        seconds = self._series.shape[1] // RATE_HZ
        due_s = time.monotonic()
        number = 0
        while not self._stopped.wait(max(0.0, due_s - time.monotonic())):
            second = number % seconds
            np.save(self._folder / ".next.npy", self._series[:, second * RATE_HZ : (second + 1) * RATE_HZ])
            (self._folder / ".next.npy").rename(self._folder / f"witnesses-{number}-1.npy")
            number += 1
            due_s += self._period_s


def measure(
    ways: Sequence[Way], witnesses: Series, address: str, folder: Path, frames: int, period_s: float
) -> list[OnlineCell]:
    """Streams some frames through each way."""
    cells = []
    for way in ways:
        answers = folder / f"online-{way.name}"
        with Detector(folder / f"frames-{way.name}", witnesses, period_s) as arriving:
            batch.online(way.name, arriving, answers, url=address, newest=True, most_frames=frames, form="npy")
        lines = [json.loads(line) for line in (answers / "manifest.jsonl").read_text().splitlines()]
        latencies_s = [line["latency_s"] for line in lines if line["kind"] == "done"]
        cells.append(OnlineCell(way, latencies_s))
        print(
            f"{way.rate:4d} predictions a second, {way.strides:3d} an update: "
            f"{1e3 * float(np.median(latencies_s)):7.1f} ms from a frame to its answers",
            flush=True,
        )
    return cells
