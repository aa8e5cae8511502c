"""What a trial showed: figures, or why there are none."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from alipes.tune.point import Point

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What a trial showed.

    Attributes:
        point: What was tried.
        figures: By name (`alipes.tune.FIGURES`), those of all models together; those of one model with its name in
            front.
        failure: Why the trial is no candidate; empty where it is one. A server that crashed, was not ready in time,
            answered nothing or swapped.
        notes: What a reader of the figures has to know.
        details: Further figures for tables.
        is_settled: Whether rate and latency agreed among the last windows.
        repeats: How many trials the figures are a mean of.
    """

    point: Point
    figures: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""
    notes: tuple[str, ...] = ()
    details: Mapping[str, float] = field(default_factory=dict)
    is_settled: bool = True
    repeats: int = 1

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """One outcome in place of repeated trials of one point: their mean. One that failed says that it does."""
        failed = [part for part in parts if part.failure]
        if failed or len(parts) == 1:
            return failed[0] if failed else parts[0]
        return cls(
            parts[0].point,
            _means([part.figures for part in parts]),
            "",
            tuple(dict.fromkeys(note for part in parts for note in part.notes)),
            _means([part.details for part in parts]),
            all(part.is_settled for part in parts),
            sum(part.repeats for part in parts),
        )

    def to_document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "point": self.point.to_document(),
            "figures": _finite(self.figures),
            "failure": self.failure,
            "notes": list(self.notes),
            "details": _finite(self.details),
            "is_settled": self.is_settled,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Reads what `to_document` gave."""
        return cls(
            Point.from_document(document["point"]),
            {str(name): float(value) for name, value in document["figures"].items()},
            str(document["failure"]),
            tuple(str(note) for note in document["notes"]),
            {str(name): float(value) for name, value in document["details"].items()},
            bool(document["is_settled"]),
        )


def _finite(figures: Mapping[str, float]) -> dict[str, float]:
    """JSON has no NaN: a figure that is none is left out."""
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def _means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: statistics.fmean(row[name] for row in rows) for name in names}
