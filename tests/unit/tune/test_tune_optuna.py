"""Searches by optuna, and pictures of trials."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.tune import Goal, Limit, Machine, Outcome, Point, Rank, Results, Space
from alipes.tune.goal import FAILED
from alipes.tune.search.optuna import Optuna

pytestmark = pytest.mark.extra("tune")

SPACE = Space.of({"m": {"instances": [1, 2, 3, 4], "max_batch_size": [1, 2, 4, 8, 16], "callers": [1, 4, 16, 64]}})


def hill(point: Point) -> Rank:
    """Best at 3 instances, a batch of 8, 16 callers; one instance is impossible."""
    values = point.of_model("m")
    if values["instances"] == 1:
        return FAILED
    goals = {"instances": 3, "max_batch_size": 8, "callers": 16}
    return Rank(0, -sum(abs(int(str(values[name])) - goal) / goal for name, goal in goals.items()))


def follow(search: Optuna, most: int) -> list[Point]:
    seen: list[Point] = []
    while len(seen) < most and (point := search.propose()) is not None:
        seen.append(point)
        search.learn(point, hill(point))
    return seen


def test_it_begins_at_its_point_and_proposes_no_point_twice() -> None:
    begin = SPACE.at((0, 0, 3))
    seen = follow(Optuna(SPACE, begin), 40)
    assert seen[0] == begin
    assert len(seen) == len(set(seen)) == 40


def test_points_that_are_tried_once_more_count_and_are_not_proposed_again() -> None:
    search = Optuna(SPACE)
    seen = follow(search, 5)
    for point in seen:
        search.learn(point, hill(point))
    assert not {*seen} & {*follow(search, 10)}


def test_the_same_seed_draws_the_same_points() -> None:
    assert follow(Optuna(SPACE, seed=3), 15) == follow(Optuna(SPACE, seed=3), 15)


def test_a_small_space_is_searched_to_its_end() -> None:
    small = Space.of({"m": {"instances": [2, 3], "max_batch_size": [8], "callers": [16]}})
    assert len(follow(Optuna(small), 100)) == 2


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_trials_are_drawn(tmp_path: Path, suffix: str) -> None:
    trials = [
        Outcome(
            Point.of({"m": {"callers": callers}}), {"rate": 10.0 * callers, "p99_ms": 1.0 * callers, "memory_mb": 1}
        )
        for callers in (1, 4, 16)
    ]
    space = Space.of({"m": {"callers": [1, 4, 16]}})
    goal = Goal(limits=(Limit.parse("p99_ms<=5"),))
    results = Results(Machine("a processor", 2, 1), goal, space, trials, present=trials[0])
    path = tmp_path / f"trials.{suffix}"
    figure = results.plot(path=path)
    assert path.stat().st_size > 5000
    (axes,) = figure.axes
    assert axes.get_xlabel() == "Throughput [/s]"
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["keeps all limits", "misses a limit", "not beaten in both", "best", "as it was"]
    results.plot("memory_mb", "rate", tmp_path / f"other.{suffix}")
    assert "<svg" in results.write(tmp_path / "out")[-1].read_text()
