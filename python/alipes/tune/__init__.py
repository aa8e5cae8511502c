"""Tuning: the best configuration of a model for a goal, found by trials on this machine, with the reasons.

    from alipes.tune import Goal, Limit, run

    results = run("models", "digits", goal=Goal(limits=(Limit.parse("p99_ms<=20"),)))
    print(results.best.point, results.decisions())
    results.write("tuned")

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

if TYPE_CHECKING:
    from alipes.tune.goal import FIGURES, Goal, Limit, Objective, Rank
    from alipes.tune.knobs import KNOBS
    from alipes.tune.machine import Machine
    from alipes.tune.outcome import Outcome
    from alipes.tune.point import Point
    from alipes.tune.results import Rejected, Results
    from alipes.tune.search.base import Search
    from alipes.tune.space import Axis, Space
    from alipes.tune.tuning import run

__all__ = [
    "FIGURES", "KNOBS", "Axis", "Goal", "Limit", "Machine", "Objective", "Outcome", "Point", "Rank", "Rejected",
    "Results", "Search", "Space", "run",
]  # fmt: skip

_HOMES = {
    "FIGURES": "alipes.tune.goal",
    "KNOBS": "alipes.tune.knobs",
    "Axis": "alipes.tune.space",
    "Goal": "alipes.tune.goal",
    "Limit": "alipes.tune.goal",
    "Machine": "alipes.tune.machine",
    "Objective": "alipes.tune.goal",
    "Outcome": "alipes.tune.outcome",
    "Point": "alipes.tune.point",
    "Rank": "alipes.tune.goal",
    "Rejected": "alipes.tune.results",
    "Results": "alipes.tune.results",
    "Search": "alipes.tune.search.base",
    "Space": "alipes.tune.space",
    "run": "alipes.tune.tuning",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
