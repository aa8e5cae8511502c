"""Searches on spaces that were measured whole on real servers: what they find with a third of the trials."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.tune import Point, Space
from alipes.tune.search.brute import Brute
from alipes.tune.search.quick import Quick
from support.sweeps.replay import POSITIONS, Found, Replay
from support.sweeps.sweep import FOLDER, Sweep

SWEEPS = sorted(FOLDER.glob("*.json"))
GOALS = (None, *POSITIONS)
"""Throughput alone; under limits that ever fewer points keep."""
TIGHTEST = POSITIONS[-1]
"""Latencies of points near it differ by less than those of repeated trials: luck decides which of them keep it."""
IMPOSSIBLE = 0
"""Under a limit that no point can keep."""


@pytest.fixture(scope="module")
def replays() -> dict[str, Replay]:
    return {path.stem: Replay(Sweep.read(path)) for path in SWEEPS}


def quick(replay: Replay, position: float | None, seed: int) -> Found:
    third = len(replay.sweep.rounds) // 3

    def way(space: Space, begin: Point) -> Quick:
        return Quick(space, begin, seed)

    found = replay.search(replay.goal(position), way, third, seed)
    assert found.trials <= third
    return found


def exhaustive(replay: Replay, position: float | None, seed: int) -> Found:
    """Every point once, and whoever leads until one leads by several trials: what noise leaves to be found."""
    return replay.search(replay.goal(position), lambda space, begin: Brute(space), None, seed)


def test_there_are_three_sweeps_of_more_than_a_hundred_points(replays: dict[str, Replay]) -> None:
    assert len(replays) >= 3
    for replay in replays.values():
        assert len(replay.sweep.rounds) > 100
        assert all(len(rounds) > 3 for rounds in replay.sweep.rounds.values())


@pytest.mark.slow("makes fifty trials many times, and learns from each")
@pytest.mark.parametrize("position", [one for one in GOALS if one != TIGHTEST])
@pytest.mark.parametrize("name", [path.stem for path in SWEEPS])
def test_a_third_of_the_trials_finds_a_point_near_the_best(
    replays: dict[str, Replay], name: str, position: float | None
) -> None:
    found = [quick(replays[name], position, seed) for seed in range(3)]
    assert sum(one.is_good for one in found) >= 2, found


@pytest.mark.slow("makes fifty trials many times, and learns from each")
@pytest.mark.parametrize("seed", [10, 23, 36])
def test_a_step_that_doubles_the_throughput_is_found(replays: dict[str, Replay], seed: int) -> None:
    """With a second caller: trials far away have the surfaces believe that it would break the limit."""
    assert quick(replays["shared"], 0.15, seed).is_good


@pytest.mark.slow("makes fifty trials many times, and learns from each")
@pytest.mark.parametrize("name", [path.stem for path in SWEEPS])
def test_an_impossible_limit_is_answered_by_a_point_near_the_nearest(replays: dict[str, Replay], name: str) -> None:
    """The latencies of the nearest points differ by less than those of repeated trials."""
    found = [quick(replays[name], IMPOSSIBLE, seed) for seed in range(3)]
    assert sum(one.over <= 0.15 for one in found) >= 2, found


@pytest.mark.proof
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("position", [*GOALS, IMPOSSIBLE])
@pytest.mark.parametrize("name", [path.stem for path in SWEEPS])
def test_fifty_searches_miss_little_more_than_noise_makes_all_miss(
    replays: dict[str, Replay], name: str, position: float | None
) -> None:
    """Where some points are luckier than the best, a search of all points misses it too."""
    found, whole = ([search(replays[name], position, seed) for seed in range(50)] for search in (quick, exhaustive))
    missed, missed_by_all = (sum(not one.is_good for one in row) for row in (found, whole))
    print(
        f"{name}, limit {position}: {missed} of 50 miss (all points: {missed_by_all}); at worst "
        f"{max(one.behind for one in found):.1%} behind, {max(one.over for one in found):.1%} over the limit"
    )
    assert missed <= missed_by_all + (15 if position == TIGHTEST else 5)


def test_a_sweep_is_read_as_it_was_written(tmp_path: Path) -> None:
    sweep = Sweep.read(SWEEPS[0])
    assert sweep.write(tmp_path).read_text() == SWEEPS[0].read_text()
