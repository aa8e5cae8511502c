"""Figures are divided within a round, and bounds are read in the row's direction."""

from __future__ import annotations

import pytest

from bench.results import RowResult, Spread
from bench.rows.row import CPU_US, Better, Facts, Sample, Target


def _result(better: Better, ours: list[float], others: list[float], target: Target) -> RowResult:
    result = RowResult(Facts("row", "a row", "requests/s", better, (target,)))
    for one, other in zip(ours, others, strict=True):
        result.add("alipes", Sample(one))
        result.add("other", Sample(other))
    return result


def test_ratios_are_computed_within_a_round() -> None:
    target = Target("alipes", "other", 0.5)
    # The machine was ten times slower in the second round, for both.
    result = _result(Better.MORE, [60, 6, 50], [100, 10, 100], target)
    assert result.comparison(target) == Spread(median=0.6, least=0.5, greatest=0.6)


@pytest.mark.parametrize(
    ("better", "value", "reached"),
    [(Better.MORE, 0.5, True), (Better.MORE, 0.49, False), (Better.LESS, 0.5, True), (Better.LESS, 0.51, False)],
)
def test_a_target_holds_in_the_direction_of_the_row(better: Better, value: float, reached: bool) -> None:
    target = Target("alipes", "other", 0.5)
    assert _result(better, [value], [1.0], target).reached(target) is reached


def test_without_a_second_contender_the_figure_itself_is_compared() -> None:
    target = Target("alipes", None, 150)
    result = _result(Better.LESS, [149, 151, 140], [1, 1, 1], target)
    assert result.comparison(target) == Spread(median=149, least=140, greatest=151)
    assert result.reached(target) is True


def test_the_pieces_of_a_round_count_as_their_median() -> None:
    target = Target("alipes", "other", 1)
    result = RowResult(Facts("row", "a row", "µs", Better.LESS, (target,), pieces=3))
    # One piece in three had both threads on one core.
    for ours, other in ((80, 20), (20, 80), (80, 80), (40, 80), (40, 80), (40, 20)):
        result.add("alipes", Sample(ours))
        result.add("other", Sample(other))
    assert result.comparison(target) == Spread(median=0.75, least=0.5, greatest=1)


@pytest.mark.parametrize("target", [Target("alipes", "absent", 1), Target("absent", None, 1)])
def test_what_was_not_measured_is_neither_reached_nor_missed(target: Target) -> None:
    result = _result(Better.MORE, [1], [1], target)
    assert result.comparison(target) is None
    assert result.reached(target) is None


def test_a_comparison_without_a_bound_is_shown_but_not_judged() -> None:
    target = Target("alipes", "other")
    result = _result(Better.MORE, [2], [1], target)
    assert result.comparison(target) == Spread(2, 2, 2)
    assert result.reached(target) is None


def test_processor_time_is_compared_where_both_have_it() -> None:
    facts = Facts("row", "a row", "requests/s", Better.MORE, (Target("alipes", "peer"),))
    result = RowResult(facts)
    for ours, theirs in ((2.0, 8.0), (4.0, 12.0)):
        result.add("alipes", Sample(1.0, {CPU_US: ours}))
        result.add("peer", Sample(1.0, {CPU_US: theirs}))
        result.add("silent", Sample(1.0))
    assert result.processor_time(facts.targets[0]) == Spread(3.5, 3.0, 4.0)
    assert result.processor_time(Target("alipes", "silent")) is None
    assert result.processor_time(Target("alipes", "absent")) is None
    assert result.processor_time(Target("alipes")) is None
