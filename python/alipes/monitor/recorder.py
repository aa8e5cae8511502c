"""Looks at servers again and again and writes down what changed: the loop behind the monitor and its command."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TextIO

from alipes.errors import TransportError
from alipes.monitor.columns import Column
from alipes.monitor.files import header, write_rows
from alipes.monitor.ledger import Key, Ledger, Row
from alipes.monitor.prometheus import Sample
from alipes.monitor.servers import Place, page

__all__ = ["Listener", "Recorder"]


@dataclass(slots=True)
class Listener:
    """Callbacks: for new rows, and for a server that stops answering or answers again (then without a reason)."""

    rows: Callable[[Sequence[Row]], None]
    trouble: Callable[[Place, str | None], None]


@dataclass(slots=True)
class _Watched:
    place: Place
    ledger: Ledger
    lost: bool = False
    answered: bool = False


class Recorder:
    """One record of several servers.

    Each server is polled on a thread of its own, so that one which does not answer holds up none of the others.
    """

    def __init__(
        self,
        places: Sequence[Place],
        keys: Sequence[Key] | None,
        columns: Sequence[Column],
        file: TextIO | None,
        interval_s: float,
        listener: Listener,
    ) -> None:
        """Polls nothing yet.

        Args:
            places: The servers.
            keys: The models; `None` for all.
            columns: Further columns.
            file: Where rows are written; `None` for nowhere.
            interval_s: Seconds from one look to the next.
            listener: Its callbacks.
        """
        self._places = places
        self._keys = keys
        self._wanted = columns
        self._file = file
        self._interval_s = interval_s
        self._listener = listener
        self._lock = threading.Lock()
        self._watched: list[_Watched] = []
        self.columns: tuple[Column, ...] = tuple(columns)

    @property
    def silent(self) -> list[Place]:
        """Servers that have not answered once."""
        return [watched.place for watched in self._watched if not watched.answered]

    def begin(self) -> None:
        """Looks for the first time, which is what later looks are compared with, and writes the header."""
        with ThreadPoolExecutor(len(self._places)) as pool:
            pages = list(pool.map(_try, self._places))
        reported = {sample.name for found in pages if not isinstance(found, str) for sample in found}
        # A column of GPUs is there only where a server has one.
        self.columns = tuple(column for column in self._wanted if column.of != "gpu" or column.metric in reported)
        for place, found in zip(self._places, pages, strict=True):
            watched = _Watched(place, Ledger(place.ip, self._keys, self.columns))
            self._watched.append(watched)
            if isinstance(found, str):
                self._lose(watched, found)
            else:
                watched.answered = True
                watched.ledger.look(time.time(), found)
        if self._file is not None:
            self._file.write(header(self.columns))
            self._file.flush()

    def run(self, stop: threading.Event) -> None:
        """Polls until stopped, and then once more, so that the record is complete."""
        with ThreadPoolExecutor(len(self._watched)) as pool:
            for done in [pool.submit(self._watch, watched, stop) for watched in self._watched]:
                done.result()

    def _watch(self, watched: _Watched, stop: threading.Event) -> None:
        try:
            due = time.monotonic() + self._interval_s
            while not stop.wait(max(0.0, due - time.monotonic())):
                self._look(watched)
                due = max(due + self._interval_s, time.monotonic())
            self._look(watched)
        finally:
            stop.set()  # one that fails, for instance since the disk is full, ends the others

    def _look(self, watched: _Watched) -> None:
        found = _try(watched.place)
        if isinstance(found, str):
            self._lose(watched, found)
            return
        rows = watched.ledger.look(time.time(), found)
        watched.answered = True
        with self._lock:
            if watched.lost:
                watched.lost = False
                self._listener.trouble(watched.place, None)
            if rows:
                if self._file is not None:
                    write_rows(self._file, rows, self.columns)
                self._listener.rows(rows)

    def _lose(self, watched: _Watched, reason: str) -> None:
        with self._lock:
            if not watched.lost:
                watched.lost = True
                self._listener.trouble(watched.place, reason)


def _try(where: Place) -> list[Sample] | str:
    """What the counters of a server say, or why they say nothing."""
    try:
        return page(where)
    except TransportError as error:
        return str(error)
