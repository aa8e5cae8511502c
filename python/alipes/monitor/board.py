"""The last seconds of a record, summed up for a screen."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from alipes.monitor.ledger import Row

__all__ = ["Board", "Line"]

SPAN_S: Final = 5.0
"""Long enough for figures that can be read, short enough to see a change."""


@dataclass(frozen=True, slots=True)
class Line:
    """One model on one server.

    Attributes:
        ip: The server.
        model: The model.
        a_second: Executions a second.
        queue_us: Mean time in the queue, for each execution.
        compute_us: Mean time in the model, likewise, with its inputs and outputs.
        total: Executions since the beginning.
    """

    ip: str
    model: str
    a_second: float
    queue_us: float
    compute_us: float
    total: int


class Board:
    """Takes rows from one thread and is read by another."""

    def __init__(self, begun: float) -> None:
        """Takes when the record began, in seconds since 1970."""
        self._begun = begun
        self._lock = threading.Lock()
        self._recent: dict[tuple[str, str], deque[Row]] = {}
        self._totals: dict[tuple[str, str], int] = {}

    def add(self, rows: Iterable[Row]) -> None:
        """Takes rows as they come."""
        with self._lock:
            for row in rows:
                key = (row.model, row.ip)
                self._recent.setdefault(key, deque()).append(row)
                self._totals[key] = self._totals.get(key, 0) + row.count

    def lines(self, now: float) -> list[Line]:
        """What there is to see at a time, models in the order in which they first executed."""
        with self._lock:
            return [self._line(key, rows, now) for key, rows in self._recent.items()]

    def _line(self, key: tuple[str, str], rows: deque[Row], now: float) -> Line:
        while rows and rows[0].timestamp <= now - SPAN_S:
            rows.popleft()
        count = sum(row.count for row in rows)
        queue = sum(row.durations_us["queue"] for row in rows)
        compute = sum(
            row.durations_us[name] for row in rows for name in ("compute_input", "compute_infer", "compute_output")
        )
        passed = min(SPAN_S, now - self._begun)
        mean = 1 / count if count else 0.0
        model, ip = key
        return Line(ip, model, count / passed if passed > 0 else 0.0, queue * mean, compute * mean, self._totals[key])
