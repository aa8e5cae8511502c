"""Ways through a space: every point, or few and good ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from alipes.tune import Point, Rank, Search, Space
from alipes.tune.goal import FAILED
from alipes.tune.search.brute import Brute
from alipes.tune.search.quick import Quick

SPACE = Space.of(
    {"m": {"instances": [1, 2, 3, 4], "max_batch_size": [1, 2, 4, 8, 16], "callers": [1, 4, 16, 64]}},
)


def follow(search: Search, rank: Callable[[Point], Rank], most: int = 1000) -> list[Point]:
    """The points that a search proposes, each of which it learns the rank of."""
    seen: list[Point] = []
    while len(seen) < most and (point := search.propose()) is not None:
        seen.append(point)
        search.learn(point, rank(point))
    return seen


def hill(point: Point) -> Rank:
    """Best at 3 instances, a batch of 8, 16 callers."""
    values = point.of_model("m")
    goals = {"instances": 3, "max_batch_size": 8, "callers": 16}
    return Rank(0, -sum(abs(int(str(values[name])) - goal) / goal for name, goal in goals.items()))


@pytest.mark.parametrize(
    "make", [lambda: Brute(SPACE), lambda: Quick(SPACE), lambda: Quick(SPACE, SPACE.at((3, 0, 3)))]
)
def test_with_time_enough_every_point_is_proposed(make: Callable[[], Search]) -> None:
    seen = follow(make(), hill)
    assert set(seen) == set(SPACE.points())
    assert max(seen.count(point) for point in seen) <= 6


def test_a_search_begins_at_its_point_and_finds_the_top() -> None:
    begin = SPACE.at((0, 0, 3))
    seen = follow(Quick(SPACE, begin), hill, SPACE.size // 3)
    assert seen[0] == begin
    assert max(map(hill, seen)) == hill(Point.of({"m": {"instances": 3, "max_batch_size": 8, "callers": 16}}))


def test_a_second_top_that_is_far_away_is_found() -> None:
    """The better one stands alone in a corner: no way leads up to it."""
    corner = SPACE.at((0, 4, 0))

    def rank(point: Point) -> Rank:
        return Rank(0, 10) if point == corner else hill(point)

    assert corner in follow(Quick(SPACE, SPACE.at((2, 0, 3))), rank, SPACE.size // 2)


def test_impossible_points_are_no_wall() -> None:
    def rank(point: Point) -> Rank:
        return FAILED if point.number("m", "instances") == 2 else hill(point)

    seen = follow(Quick(SPACE, SPACE.at((0, 0, 0))), rank, SPACE.size // 3)
    assert max(map(rank, seen)).score > -0.5


def test_a_search_with_the_same_seed_is_the_same() -> None:
    first, second = (follow(Quick(SPACE, seed=3), hill) for _ in range(2))
    assert first == second


def test_a_limit_is_approached_from_both_sides() -> None:
    """The best point keeps the limit narrowly, and all that give more miss it."""

    def rank(point: Point) -> Rank:
        values = point.of_model("m")
        load = sum(math.log2(int(str(value))) for value in values.values())
        return Rank(min(6.5 - load, 0.0), load, 6.5 - load)

    seen = follow(Quick(SPACE, SPACE.at((0, 0, 0))), rank, SPACE.size // 3)
    assert max(map(rank, seen)) == max(map(rank, SPACE.points()))


def test_out_of_reach_of_a_limit_the_nearest_point_is_found() -> None:
    """The nearest is in no corner, and gives less than any other."""
    nearest = SPACE.at((1, 2, 1))

    def rank(point: Point) -> Rank:
        away = sum(abs(a - b) for a, b in zip(SPACE.places(point), SPACE.places(nearest), strict=True))
        return Rank(-1.0 - away, away, -1.0 - away)

    seen = follow(Quick(SPACE, SPACE.at((3, 0, 3))), rank, SPACE.size // 3)
    assert nearest in seen


def test_an_unlucky_point_is_proposed_again() -> None:
    """The top misses the limit by a hair in its first trial, and keeps it in the next ones."""
    top = Point.of({"m": {"instances": 3, "max_batch_size": 8, "callers": 16}})
    trials: list[Point] = []

    def rank(point: Point) -> Rank:
        trials.append(point)
        margin = -0.001 if point == top and trials.count(top) == 1 else 0.2 if point == top else 0.05
        return Rank(min(margin, 0.0), hill(point).score, margin)

    follow(Quick(SPACE, SPACE.at((0, 0, 3))), rank, SPACE.size // 2)
    assert trials.count(top) > 1


def test_a_large_space_is_searched_by_some_of_its_points() -> None:
    large = Space.of({"m": {"instances": range(1, 21), "max_batch_size": range(1, 41), "callers": range(1, 61)}})

    def rank(point: Point) -> Rank:
        goals = {"instances": 13, "max_batch_size": 31, "callers": 47}
        values = point.of_model("m")
        return Rank(0, -sum(abs(int(str(values[name])) - goal) / goal for name, goal in goals.items()))

    assert max(map(rank, follow(Quick(large, large.at((0, 0, 0))), rank, 40))).score > -0.3


def test_a_space_of_one_point_is_searched() -> None:
    one = Space.of({"m": {"instances": [1]}})
    assert follow(Quick(one), lambda point: Rank(0, 0)) == [one.at((0,))]
    assert follow(Brute(one), lambda point: Rank(0, 0)) == [one.at((0,))]
