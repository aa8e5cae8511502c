"""What a change would bring, by a model of a queue in front of equal instances."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from alipes.advise.reading import Flow

__all__ = ["ServiceTime", "capacity", "wait_ms"]

_FULL: Final = 0.999
"""Above this share of time the wait has no mean."""


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """How long an execution takes: a fixed part, and one for each row; in milliseconds.

    Attributes:
        fixed_ms: Of each execution.
        row_ms: Of each row.
        is_fitted: Whether batches of different sizes were seen; else nothing is known of the fixed part, and each row
            counts as costing the same.
    """

    fixed_ms: float
    row_ms: float
    is_fitted: bool

    @classmethod
    def of(cls, batches: Mapping[int, tuple[int, float]]) -> ServiceTime:
        """A line through the sizes that were seen, weighted by how often they were."""
        weight = sum(count for count, _ in batches.values())
        if not weight:
            return cls(0.0, 0.0, False)
        size = sum(count * rows for rows, (count, _) in batches.items()) / weight
        mean = sum(count * ms for count, ms in batches.values()) / weight
        spread = sum(count * (rows - size) ** 2 for rows, (count, _) in batches.items())
        if len(batches) < 2 or not spread:
            return cls(0.0, mean / max(size, 1.0), False)
        slope = sum(count * (rows - size) * (ms - mean) for rows, (count, ms) in batches.items()) / spread
        slope = min(max(slope, 0.0), mean / size)
        return cls(mean - slope * size, slope, True)

    def of_batch(self, rows: float) -> float:
        """Milliseconds of an execution with so many rows."""
        return self.fixed_ms + self.row_ms * rows


def capacity(instances: int, rows: float, execution_ms: float) -> float:
    """Rows per second that instances can execute, all the time, in batches of so many."""
    return instances * rows / execution_ms * 1000 if execution_ms > 0 else math.inf


def wait_ms(flow: Flow, instances: int) -> float:
    """Mean wait of batches with so many instances, where executions and arrivals are random.

    Source: Erlang's C formula.
    """
    load = flow.executions / flow.seconds * flow.execution_ms / 1000
    busy = load / instances
    if busy >= _FULL:
        return math.inf
    terms = [1.0]
    for number in range(1, instances + 1):
        terms.append(terms[-1] * load / number)
    waiting = terms[-1] / (1 - busy)
    chance = waiting / (sum(terms[:-1]) + waiting)
    return chance * flow.execution_ms / (instances * (1 - busy))
