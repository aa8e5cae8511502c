"""One soak: a server, honest traffic, faults, and a sample each second."""

from __future__ import annotations

import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from support.regions import ALLOWED
from support.server import ServerProcess
from support.soak.fault import Scene
from support.soak.faults import Faults
from support.soak.mistakes import Mistakes
from support.soak.models import write_repository
from support.soak.probe import probe
from support.soak.record import Sample, Writer
from support.soak.tally import Tally
from support.soak.traffic import Traffic
from support.steady_client import SteadyClient

LOG: Final = "server.log"

_INTERVAL_S: Final = 1.0
_PROGRESS_S: Final = 60.0
# Loads by request, and room for the sequences that clients leave.
_FLAGS: Final = ("--model-control-mode=explicit", "--load-model=*", ALLOWED, "--streaming-max-sequences=5000")

Say = Callable[[str], None]


@dataclass
class Outcome:
    """How a soak went, apart from its samples.

    Attributes:
        story: What was done and answered, for people.
        wrong: What must not have happened.
    """

    story: str
    wrong: list[str]


class Soak:
    """A server under everything."""

    def __init__(
        self, folder: Path, seconds: float, seed: int, say: Say, *, leak: bool = False, calm: bool = False
    ) -> None:
        """Prepares it; samples, log and faults go into the folder. A calm one has no faults."""
        self._folder, self._seconds, self._seed, self._say = folder, seconds, seed, say
        self._leak, self._calm = leak, calm
        self._tally = Tally()
        self._wrong = Mistakes(say)
        self._answers = self._refusals = 0
        self._stopped = False

    def run(self) -> Outcome:
        """Runs it to its end, or until Ctrl-C."""
        with tempfile.TemporaryDirectory(prefix="alipes-soak-") as home, Writer(self._folder) as writer:
            repository = Path(home) / "models"
            write_repository(repository, leak=self._leak)
            with ServerProcess(repository, *_FLAGS, f"--trace-config=triton,file={home}/trace.json") as server:
                try:
                    done = self._drive(server.wait_until_started(), repository, writer)
                    self._end(server)
                finally:
                    (self._folder / LOG).write_text(server.output, encoding="utf-8")
        faults = ", ".join(f"{name} {count}" for name, count in sorted(done.items()))
        return Outcome(f"{self._answers} answers, {self._refusals} refusals; faults: {faults}", self._wrong.texts())

    def _drive(self, server: ServerProcess, repository: Path, writer: Writer) -> dict[str, int]:
        scene = Scene(server, repository, random.Random(f"{self._seed} faults"))
        with ExitStack() as stack:
            stack.enter_context(self._interruptible())
            traffic = stack.enter_context(Traffic(server, self._seed))
            steady = stack.enter_context(SteadyClient(server.http, server.grpc))
            faults = stack.enter_context(Faults(scene, self._tally, self._folder, calm=self._calm))
            try:
                self._sample(server, traffic, steady, faults, writer)
            except (AssertionError, OSError, psutil.Error, ValueError) as error:
                self._wrong.add(f"the soak ended early: {type(error).__name__}: {error}")
        self._count(traffic.left)
        return dict(faults.done)

    def _sample(
        self, server: ServerProcess, traffic: Traffic, steady: SteadyClient, faults: Faults, writer: Writer
    ) -> None:
        begun_s = time.monotonic()
        printed_s = begun_s
        while not self._stopped and time.monotonic() - begun_s < self._seconds:
            time.sleep(_INTERVAL_S)
            if (code := server.process.poll()) is not None:
                self._wrong.add(f"the server ended with exit code {code}")
                return
            sample = probe(server.process.pid) | _latencies(steady.latencies_by_protocol_s(at_least=0))
            answers, refusals = self._count(traffic.take())
            seconds = time.monotonic() - begun_s
            done = sum(faults.done.values())
            sample |= {
                "seconds": seconds,
                "answers": answers,
                "refusals": refusals,
                "faults": done,
                "mistakes": self._wrong.count,
            }
            writer.add(sample)
            if time.monotonic() - printed_s >= _PROGRESS_S:
                printed_s = time.monotonic()
                self._say(self._progress(sample))

    def _count(self, counts: tuple[int, int, list[str]]) -> tuple[int, int]:
        """Adds what the traffic has counted, and what was wrong anywhere, which is printed at once."""
        answers, refusals, wrong = counts
        self._answers += answers
        self._refusals += refusals
        for text in (*wrong, *self._tally.take()[2]):
            self._wrong.add(text)
        return answers, refusals

    def _progress(self, sample: Sample) -> str:
        def of(name: str, scale: float = 1.0) -> str:
            value = sample[name]
            return "none" if value is None else f"{value / scale:.0f}"

        return (
            f"{of('seconds', 60)} of {self._seconds / 60:.0f} min: {self._answers} answers, {self._refusals} refusals, "
            f"{of('faults')} faults, {self._wrong.count} wrong; server {of('server_bytes', 1 << 20)} MiB, "
            f"all {of('all_bytes', 1 << 20)} MiB, {of('descriptors')} descriptors, {of('threads')} threads, "
            f"{of('processes')} processes"
        )

    def _end(self, server: ServerProcess) -> None:
        """Ends the server as an operator does."""
        if server.process.poll() is None and (code := server.stop()) != 0:
            self._wrong.add(f"the server ended with exit code {code} when it was asked to stop")

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C ends the soak in its order."""

        def stop(*_: object) -> None:
            self._stopped = True

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _latencies(by_protocol_s: dict[str, list[float]]) -> Sample:
    """Median and 99th percentile of the interval; none where nothing was answered."""
    sample: Sample = {}
    for protocol, latencies_s in by_protocol_s.items():
        median, high = np.quantile(latencies_s, (0.5, 0.99)) if latencies_s else (None, None)
        sample |= {f"{protocol}_median_s": median, f"{protocol}_p99_s": high}
    return sample
