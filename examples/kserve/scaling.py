"""A predictor that runs only while somebody asks for it, and what Knative would do with one that starts as slowly."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Thread
from typing import Final

import numpy as np
from alipes import Client
from alipes.autoscale import KnativeScaler, KnativeSettings, Replica, ServiceCurve, SimulatedDay, simulate
from reviews import LENGTH

__all__ = ["FromZero", "from_zero", "replay"]

_ROUNDS: Final = 2
_REQUESTS: Final = 8
_PAUSE_S: Final = 0.15
_IDLE_S: Final = 1.0
# Of what one replica answers: nobody asks, more and more do, all at once do, few do, nobody does.
_LOAD: Final = (
    *((0, 0.0), (150, 0.0), (270, 2.5), (450, 2.5)),
    *((451, 5.0), (490, 5.0), (491, 0.6), (660, 0.6), (661, 0.0)),
)
_SECONDS: Final = 900


@dataclass
class FromZero:
    """What requests saw of a server that is there only while somebody asks.

    Attributes:
        requests: Times, each with how long the request took.
        runs: From when until when a server ran.
    """

    requests: list[tuple[float, float]] = field(default_factory=list)
    runs: list[tuple[float, float]] = field(default_factory=list)

    @property
    def start_s(self) -> float:
        """How long the slowest request took: it found no server."""
        return max(latency for _, latency in self.requests)

    @property
    def service_s(self) -> float:
        """How long a request takes that finds one."""
        return float(np.median([latency for _, latency in self.requests]))


class _Holder:
    """`alipes activate`, which holds the ports of the server."""

    def __init__(self, models: Path) -> None:
        words = ["activate", "--", "serve", str(models), "--idle-exit", str(_IDLE_S), "--http-address=127.0.0.1"]
        words += ["--http-port=0", "--allow-grpc=false", "--metrics-port=0"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "alipes", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._lines: list[tuple[float, str]] = []
        self._changed = Condition()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            with self._changed:
                self._lines.append((time.monotonic(), line))
                self._changed.notify_all()

    def wait_for(self, pattern: str, number: int = 1) -> tuple[float, re.Match[str]]:
        """When its log had a line with the pattern, the lines counted from 1, and what it matched there."""
        with self._changed:
            while True:
                found = [(at_s, match) for at_s, line in self._lines if (match := re.search(pattern, line))]
                if len(found) >= number:
                    return found[number - 1]
                if not self._changed.wait(60):
                    raise TimeoutError(f"no {pattern!r} in:\n{''.join(line for _, line in self._lines)}")


@contextmanager
def _held(models: Path) -> Iterator[tuple[_Holder, str]]:
    """The holder and its address; all of it ends with the block."""
    holder = _Holder(models)
    try:
        _, found = holder.wait_for(r"http waits for connections at ([\d.:]+)")
        yield holder, f"http://{found[1]}"
    finally:
        holder.process.terminate()
        holder.process.wait()


def from_zero(models: Path) -> FromZero:
    """Asks a few times, lets the server end, and asks again; no request is lost."""
    found = FromZero()
    ids = np.zeros((1, LENGTH), np.int64)
    with _held(models) as (holder, address):
        begun_s = time.monotonic()
        for number in range(1, _ROUNDS + 1):
            for _ in range(_REQUESTS):
                sent_s = time.monotonic()
                with Client(address) as client:
                    client.infer("bert", {"ids": ids})
                found.requests.append((sent_s - begun_s, time.monotonic() - sent_s))
                time.sleep(_PAUSE_S)
            (ready_s, _), (ended_s, _) = (
                holder.wait_for(words, number) for words in ("the server is ready", "the server has ended")
            )
            found.runs.append((ready_s - begun_s, ended_s - begun_s))
            time.sleep(_IDLE_S)
    return found


def replay(start_s: float, service_s: float) -> SimulatedDay:
    """What Knative's autoscaler does with replicas that work on one request at a time; nothing is started.

    Args:
        start_s: How long a replica takes to start.
        service_s: How long it takes for a request.
    """
    times_s, shares = zip(*_LOAD, strict=True)
    arrived = np.interp(np.arange(_SECONDS), times_s, shares) / service_s
    replica = Replica(start_s, ServiceCurve.of_service_time(service_s, 1), 1)
    settings = KnativeSettings(container_concurrency=1).with_values({"min-scale": "0", "max-scale": "8"})
    return simulate(arrived, replica, KnativeScaler(settings))
