"""The course of a search: what it tries, what it knows."""

from __future__ import annotations

from pathlib import Path

from alipes.config.pbtxt import parse_pbtxt
from alipes.tune import Goal, Machine, Outcome, Point
from alipes.tune.course import Course
from alipes.tune.history import History
from alipes.tune.models import TunedModel
from alipes.tune.possible import Checks

HERE = Machine("a processor", 2, 8 << 30)
CONFIG = parse_pbtxt("max_batch_size: 4")
POINT = Point.of({"m": {"callers": 4}})


class Recorded:
    """A trial that was measured before."""

    def run(self, point: Point) -> Outcome:
        return Outcome(point, {"rate": 1000.0, "p99_ms": 1.0})


def figures(file: Path, goal: Goal) -> dict[str, float]:
    """Those of the one point, tried or known."""
    checks = Checks(HERE, {"m": TunedModel("m", None, CONFIG)}, {"m": CONFIG})
    with History(file, HERE, "workload") as history:
        outcome = Course(Recorded(), checks, goal, history, lambda seen: None).try_point(POINT)
    assert outcome is not None
    return dict(outcome.figures)


def test_costs_are_those_of_the_goal_and_not_of_an_earlier_search(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    priced = figures(file, Goal(server_hour_price=3.6, demand=2500))
    assert (priced["cost"], priced["cost_per_hour"]) == (1.0, 3.6 * 3)
    assert figures(file, Goal()) == {"rate": 1000.0, "p99_ms": 1.0}
    assert figures(file, Goal(server_hour_price=7.2))["cost"] == 2.0
    assert file.read_text(encoding="utf-8").count("\n") == 1
