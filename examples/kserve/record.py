"""What happens in a run, with its time: which version answers requests, how long they take, and what is decided."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from alipes import Client
from alipes.errors import AlipesError

__all__ = ["Record"]

_PERIOD_S = 0.4


class Record:
    """Reads the statistics of the network's versions all the time. A context manager: leaving it ends that.

    Attributes:
        moments: Times of decisions, each with a few words.
        counts: Times, each with how many requests every version had answered.
        latencies: Times at which requests were answered, each with how long it took.
    """

    def __init__(self, address: str) -> None:
        """Takes the address of the predictor; time begins here."""
        self.moments: list[tuple[float, str]] = []
        self.counts: list[tuple[float, dict[int, int]]] = []
        self.latencies: list[tuple[float, float]] = []
        self._address = address
        self._begun_s = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._follow)

    @property
    def now_s(self) -> float:
        """Seconds since the record began."""
        return time.monotonic() - self._begun_s

    def mark(self, text: str) -> None:
        """Notes that something was decided now."""
        self.moments.append((self.now_s, text))

    def add(self, latency_s: float) -> None:
        """Notes that a request was answered now."""
        self.latencies.append((self.now_s, latency_s))

    def __enter__(self) -> Self:
        """Begins to read."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends."""
        self._end.set()
        self._thread.join()

    def _follow(self) -> None:
        with Client(self._address) as client:
            while not self._end.wait(_PERIOD_S):
                try:
                    found = client.statistics("bert")
                except AlipesError:  # while the versions of the model change
                    continue
                counts = {int(one["version"]): int(one["inference_stats"]["success"]["count"]) for one in found}
                self.counts.append((self.now_s, counts))
