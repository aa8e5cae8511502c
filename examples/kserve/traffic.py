"""Callers that send reviews to the transformer all the time, and count what comes back."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import numpy as np
from alipes import Client
from alipes.errors import AlipesError
from record import Record
from reviews import reviews

__all__ = ["Traffic"]


class Traffic:
    """Some callers, each on a thread. A context manager: leaving it ends them.

    Attributes:
        answered: Requests with an answer.
        right: Reviews whose class is right.
        failed: Requests that failed, by the text of their error.
    """

    def __init__(self, address: str, record: Record, callers: int = 4) -> None:
        """Takes the transformer's address, and what notes each answer."""
        self.answered, self.right = 0, 0
        self.failed: dict[str, int] = {}
        self._address, self._record = address, record
        self._lock, self._end = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(seed,)) for seed in range(callers)]

    def __enter__(self) -> Self:
        """Starts the callers."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends them."""
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _call(self, seed: int) -> None:
        texts, good = reviews(500, seed=1000 + seed)
        with Client(self._address) as client:
            at = 0
            while not self._end.is_set():
                at = (at + 1) % len(texts)
                begun_s = time.monotonic()
                try:
                    found = client.infer("reviews", {"text": np.array([[texts[at]]], object)})["output_0"]
                except AlipesError as failure:
                    with self._lock:
                        self.failed[str(failure)] = self.failed.get(str(failure), 0) + 1
                    continue
                with self._lock:
                    self._record.add(time.monotonic() - begun_s)
                    self.answered += 1
                    self.right += int((found[0, 1] > 0.5) == good[at])
