"""The verdict on the bottleneck: a model that requests wait for, or the clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from alipes.monitor.ledger import Row

__all__ = ["Tally", "Verdict", "verdict"]

WAITS: Final = 1.0
"""A model is waited for where requests spend more time in its queue than in its execution."""

GROWS: Final = 1.5
"""A queue grows where the mean time in it is that many times longer in the second half of the record."""

_MAX_ROWS: Final = 10_000
"""Rows of each model that the verdict looks back at."""

Kind = Literal["idle", "model", "clients"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What held the work up.

    Attributes:
        kind: `idle`: nothing was executed. `model`: requests wait for a model. `clients`: models wait for requests.
        model: The model that is waited for.
        text: The same for people, with its figures and what to try.
    """

    kind: Kind
    model: str | None
    text: str

    def __str__(self) -> str:
        """The text."""
        return self.text


@dataclass(slots=True)
class _Intervals:
    rows: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=_MAX_ROWS))

    def mean(self, column: int, rows: Iterable[tuple[int, int, int]] | None = None) -> float:
        """Microseconds for each execution."""
        selected = list(self.rows if rows is None else rows)
        executions = sum(row[0] for row in selected)
        return sum(row[column] for row in selected) / executions if executions else 0.0

    def growth(self) -> float:
        """How much longer requests wait in the second half than in the first."""
        rows = list(self.rows)
        half = len(rows) // 2
        before = self.mean(1, rows[:half])
        return self.mean(1, rows[half:]) / before if before else 1.0


class Tally:
    """Rows as they come, model by model."""

    def __init__(self) -> None:
        """Knows nothing yet."""
        self._models: dict[str, tuple[_Intervals, list[tuple[int, int, int]]]] = {}

    def add(self, row: Row) -> None:
        """Takes a row. A model's first one counts only while there is no other, for a first execution is slow."""
        computing = sum(row.durations_us[name] for name in ("compute_input", "compute_infer", "compute_output"))
        interval = (row.count, row.durations_us["queue"], computing)
        intervals, first = self._models.setdefault(row.model, (_Intervals(), []))
        if first:
            intervals.rows.append(interval)
        else:
            first.append(interval)

    def verdict(self) -> Verdict:
        """What held the work up so far."""
        models = {
            name: intervals if intervals.rows else _Intervals(deque(first))
            for name, (intervals, first) in self._models.items()
        }
        if not models:
            return Verdict("idle", None, "nothing was executed: no request has arrived, or none has been answered")
        slowest = max(models, key=lambda name: models[name].mean(1))
        waiting, computing = models[slowest].mean(1), models[slowest].mean(2)
        figures = f"{waiting:.0f} us in the queue of {slowest} for each execution, {computing:.0f} us in the model"
        if waiting <= WAITS * computing:
            return Verdict(
                "clients",
                None,
                f"the clients or the network are the bottleneck: models wait for requests ({figures} at most); send "
                "more at a time, or from more clients",
            )
        grows = ", and it grows" if models[slowest].growth() > GROWS else ""
        return Verdict(
            "model",
            slowest,
            f"requests wait for {slowest}: {figures}{grows}; give it more instances or larger batches, or send it less",
        )


def verdict(rows: Iterable[Row]) -> Verdict:
    """What held the work up while a record was made; `read_rows` gives its rows."""
    tally = Tally()
    for row in rows:
        tally.add(row)
    return tally.verdict()
