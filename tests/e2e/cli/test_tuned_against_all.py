"""A search on real servers beside a search of all points: what it finds is as fast as the best of all."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from alipes import Server
from alipes.config.pbtxt import to_pbtxt
from alipes.loadtest import Candidate, Closed, Comparison, Measuring, compare
from alipes.tune import Results, run
from support.sweeps.models import SWEPT

CALLERS = 12
RANGES = {"instances": [1, 2, 3, 4], "max_batch_size": [1, 2, 3, 4, 6, 8], "callers": [CALLERS]}
POINTS = 24


def tuned(models: Path, ranges: dict[str, list[int]], search: str, measuring: Measuring, trials: int | None) -> Results:
    results = run(models, "device", ranges=ranges, search=search, measuring=measuring, trials=trials)  # type: ignore[arg-type]
    assert results.best is not None
    assert not any(outcome.failure for outcome in results.outcomes)
    return results


def beside(models: Path, first: Results, second: Results, rounds: int, measuring: Measuring) -> Comparison:
    """Both of the best, each on a server of its own, in interleaved rounds."""
    with ExitStack() as stack:
        candidates = []
        for name, results in (("all points", first), ("a third", second)):
            folder = models.parent / name.replace(" ", "-")
            SWEPT["device"].add(folder)
            (folder / "device" / "config.pbtxt").write_text(to_pbtxt(results.configs["device"]))
            server = stack.enter_context(Server(folder, port=0, host="127.0.0.1"))
            candidates.append(Candidate(name, server.url, "device"))
        return compare(candidates[0], candidates[1], Closed(CALLERS), rounds=rounds, measuring=measuring)


def overlap(comparison: Comparison) -> bool:
    """Whether the 95 % intervals of both rates share values."""
    first, second = (level.rate for level in comparison.levels)
    return max(first.low, second.low) <= min(first.high, second.high)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    SWEPT["device"].add(folder)
    return folder


@pytest.mark.slow("starts a server for each configuration")
def test_the_best_of_both_searches_are_compared_in_rounds(models: Path) -> None:
    """The short form: of four points, with so few requests that no rate is sure."""
    short = Measuring(count=40)
    few = {**RANGES, "instances": [1, 2], "max_batch_size": [1, 4]}
    whole = tuned(models, few, "brute", short, None)
    quick = tuned(models, few, "quick", short, 2)
    assert len(whole.outcomes) == 4
    assert len(quick.outcomes) <= 2
    comparison = beside(models, whole, quick, 4, Measuring(window_s=0.2, warm_up_s=0.1))
    assert comparison.rounds == 4
    assert all(level.rate.mean > 0 for level in comparison.levels)


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_a_third_of_the_trials_finds_a_rate_like_that_of_the_best(models: Path) -> None:
    measuring = Measuring(window_s=1.0, windows=3, within=0.05)
    whole = tuned(models, RANGES, "brute", measuring, None)
    quick = tuned(models, RANGES, "quick", measuring, POINTS // 3)
    assert len(whole.outcomes) == POINTS
    assert sum(outcome.repeats for outcome in quick.outcomes) <= POINTS // 3
    comparison = beside(models, whole, quick, 20, Measuring(window_s=1.0))
    rates = [(level.rate.low, level.rate.mean, level.rate.high) for level in comparison.levels]
    print(f"all points: {whole.best}, a third: {quick.best}, rates beside each other: {rates}, {comparison.rate}")
    assert overlap(comparison) or comparison.rate.value > 1
