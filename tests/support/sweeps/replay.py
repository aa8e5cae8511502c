"""Searches on recorded sweeps: a trial draws one of the measurements of its point."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from alipes.tune import Goal, Limit, Machine, Outcome, Point, Results, Search, Space
from alipes.tune.course import Course
from alipes.tune.history import History
from alipes.tune.tuning import search_space

from support.sweeps.sweep import FIGURES, Figures, Sweep

__all__ = ["POSITIONS", "Found", "Replay"]

POSITIONS = (0.8, 0.5, 0.3, 0.15, 0.05)
"""Which share of all points keeps a limit, about: from one that nearly all keep to one that nearly all miss."""
_AROUND = 0.04
_IMPOSSIBLE = 0.3

_PRESENT = {"instances": 1, "max_batch_size": 4, "queue_delay_us": 0}


@dataclass
class _Drawn:
    """Trials that draw from the measurements of their points."""

    sweep: Sweep
    random: np.random.Generator
    count: int = 0

    def run(self, point: Point) -> Outcome:
        self.count += 1
        rounds = self.sweep.rounds[point]
        return Outcome(point, rounds[int(self.random.integers(len(rounds)))])


@dataclass
class _Recorded:
    """Leaves out what was not recorded, since it cannot be."""

    sweep: Sweep
    machine: Machine = field(default_factory=lambda: Machine("the recorded one", 2, 1 << 40))

    def reason(self, point: Point) -> str:
        return "" if point in self.sweep.rounds else "it was not recorded"


@dataclass(frozen=True)
class Found:
    """What a search found, by the means of all measurements.

    Attributes:
        trials: How many it made.
        behind: By which share its throughput is below that of the best point which keeps the limits.
        over: By which share it misses the limits; where none can be kept, beyond the point that misses them least.
    """

    trials: int
    behind: float
    over: float

    @property
    def is_good(self) -> bool:
        """Whether it is within 5 % of the best."""
        return self.behind <= 0.05 and self.over <= 0.05


@dataclass(frozen=True)
class Replay:
    """Searches on one sweep.

    Attributes:
        sweep: The sweep.
        metric: The latency that limits are set on.
    """

    sweep: Sweep
    metric: str = "p90_ms"

    @cached_property
    def means(self) -> dict[Point, Figures]:
        """What each point gives on average."""
        return {
            point: {figure: statistics.fmean(one[figure] for one in rounds) for figure in FIGURES}
            for point, rounds in self.sweep.rounds.items()
        }

    def goal(self, position: float | None) -> Goal:
        """Throughput, under a latency that about this share of all points keeps; that of none is out of reach.

        Of the limits near by it is the one that is farthest from any point's latency: whether a point keeps it should
        not be a matter of luck.
        """
        if position is None:
            return Goal()
        sizes = sorted(figures[self.metric] for figures in self.means.values())
        if position == 0:
            return Goal(limits=(Limit(self.metric, sizes[0] * _IMPOSSIBLE, "at most"),))
        least, most = (int((position + around) * len(sizes)) for around in (-_AROUND, _AROUND))
        at = max(range(max(2, least), min(len(sizes) - 2, most + 1)), key=lambda at: sizes[at + 1] / sizes[at])
        return Goal(limits=(Limit(self.metric, math.sqrt(sizes[at] * sizes[at + 1]), "at most"),))

    def search(self, goal: Goal, way: Callable[[Space, Point], Search], trials: int | None, seed: int) -> Found:
        """Searches as `alipes tune` does.

        Args:
            goal: What is wanted.
            way: Makes the search.
            trials: Most trials.
            seed: For what trials give.
        """
        drawn = _Drawn(self.sweep, np.random.default_rng(seed))
        checks = _Recorded(self.sweep)
        course = Course(drawn, checks, goal, History(None, checks.machine, "replayed"), lambda seen: None)  # type: ignore[arg-type]
        present = {self.sweep.name: _PRESENT}
        return self.judged(search_space(course, self.sweep.space, present, way, trials, {}), goal, drawn.count)

    def judged(self, results: Results, goal: Goal, trials: int) -> Found:
        """How good what was found really is."""
        assert results.best is not None
        ranks = {point: goal.rank(figures) for point, figures in self.means.items()}
        found, best = ranks[results.best.point], max(ranks.values())
        over = math.exp(best.compliance - found.compliance) - 1
        behind = 1 - math.exp(found.score - best.score) if best.compliance == 0 else 0.0
        return Found(trials, behind, over)
