"""What a search found: the best point, all others, and why."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from alipes.config.schema import ModelConfig
from alipes.tables import frame
from alipes.tune.decisions import decisions
from alipes.tune.goal import FAILED, Goal, Rank, figure_of
from alipes.tune.machine import Machine
from alipes.tune.outcome import Outcome
from alipes.tune.point import Point
from alipes.tune.space import Space

__all__ = ["Rejected", "Results"]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A point that was never tried.

    Attributes:
        point: The point.
        reason: Why.
    """

    point: Point
    reason: str


@dataclass(frozen=True)
class Results:
    """What a search found.

    Attributes:
        machine: Where the trials ran: on another one the best may be another.
        goal: What it was after.
        space: Where it searched.
        outcomes: All trials, one for each point, in their order.
        rejected: Points that were left out, each with its reason.
        present: The configuration as it was, under the load of the best point; `None` where it was not tried.
        configs: The configurations of the best point by model.
        interrupted: Whether the search was stopped before its end.
    """

    machine: Machine
    goal: Goal
    space: Space
    outcomes: Sequence[Outcome]
    rejected: Sequence[Rejected] = ()
    present: Outcome | None = None
    configs: Mapping[str, ModelConfig] = field(default_factory=dict)
    interrupted: bool = False

    def __str__(self) -> str:
        """The best point, and one sentence for each decision."""
        return "\n".join([*([str(self.best.point)] if self.best is not None else []), *self.decisions()])

    @cached_property
    def ranked(self) -> Sequence[Outcome]:
        """All trials that are candidates, the best first."""
        good = [outcome for outcome in self.outcomes if self.rank(outcome) > FAILED]
        return sorted(good, key=self.rank, reverse=True)

    @property
    def best(self) -> Outcome | None:
        """The best; where none keeps all limits, the one that misses them least. `None` where every trial failed."""
        return self.ranked[0] if self.ranked else None

    @property
    def is_feasible(self) -> bool:
        """Whether the best keeps all limits."""
        return self.best is not None and self.rank(self.best).compliance == 0

    def rank(self, outcome: Outcome) -> Rank:
        """How good an outcome is."""
        return FAILED if outcome.failure else self.goal.rank(outcome.figures)

    def pareto(self, across: str = "rate", up: str = "p99_ms") -> list[Outcome]:
        """The candidates that no other one beats in both figures, in the order of the first."""
        signs = [1 if figure_of(name).more_is_better else -1 for name in (across, up)]

        def gains(outcome: Outcome) -> tuple[float, float]:
            return signs[0] * outcome.figures[across], signs[1] * outcome.figures[up]

        front: list[Outcome] = []
        for outcome in sorted(self.ranked, key=gains, reverse=True):
            if not front or gains(outcome)[1] > gains(front[-1])[1]:
                front.append(outcome)
        return sorted(front, key=lambda outcome: outcome.figures[across])

    def decisions(self) -> list[str]:
        """One sentence for each decision."""
        return decisions(self)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each trial: its values, its figures, its rank."""
        places = {outcome.point: place for place, outcome in enumerate(self.ranked, 1)}
        several = len({axis.model for axis in self.space.axes}) > 1
        return [
            {
                "rank": places.get(outcome.point),
                **{f"{model}.{knob}" if several else knob: value for model, knob, value in outcome.point.values},
                **outcome.figures,
                **outcome.details,
                "repeats": outcome.repeats,
                "is_settled": outcome.is_settled,
                "failure": outcome.failure,
            }
            for outcome in self.outcomes
        ]

    def to_pandas(self) -> Any:
        """One row for each trial, as a `pandas.DataFrame`.

        Raises:
            Unsupported: If pandas is not installed.
        """
        return frame(self.rows())

    def plot(self, across: str = "rate", up: str = "p99_ms", path: str | os.PathLike[str] | None = None) -> Any:
        """All candidates in two figures, with those that no other one beats joined by a line.

        Args:
            across: The figure from left to right.
            up: The figure from bottom to top.
            path: A file for the picture.

        Returns:
            The figure, of matplotlib.

        Raises:
            Unsupported: If matplotlib is not installed.
        """
        from alipes.tune.plot import plot_results

        return plot_results(self, across, up, path)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes the best configurations, the table and the report.

        Returns:
            The files: `<model>/config.pbtxt`, `trials.csv`, `report.html`.
        """
        from alipes.tune.files import write_results

        return write_results(self, Path(folder))
