"""Service curves: from a service time, from trials, and what is read off them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alipes.autoscale import ServiceCurve, curve_of, read_curve
from alipes.errors import ConfigError
from alipes.tune import Outcome, Point

MEASURED = ServiceCurve((1, 2, 4, 8), (50, 90, 120, 121))


def trial(callers: int, rate: float, *, instances: int = 1, model: str = "m", failure: str = "") -> Outcome:
    point = Point.of({model: {"instances": instances, "callers": callers}})
    return Outcome(point, {} if failure else {"rate": rate, "p99_ms": 2.0 * callers}, failure)


def test_a_curve_is_straight_between_its_points_and_flat_behind_them() -> None:
    assert [MEASURED.rate(count) for count in (0.5, 1, 3, 8, 20)] == [25, 50, 105, 121, 121]
    assert [MEASURED.needed(rate) for rate in (25, 50, 105, 121, 900)] == [0.5, 1, 3, 8, 8]


def test_the_knee_is_where_more_at_a_time_brings_little() -> None:
    assert MEASURED.knee == 4
    assert ServiceCurve.of_service_time(0.1, 6).knee == 6
    assert ServiceCurve.of_service_time(0.1, 1).rates == (10,)


def test_service_times_follow_from_littles_law() -> None:
    assert MEASURED.service_s(0) == pytest.approx(1 / 50)
    assert MEASURED.service_s(4) == pytest.approx(4 / 120)


def test_a_rate_that_falls_again_needs_no_more_at_a_time() -> None:
    falling = ServiceCurve((1, 2, 4), (50, 90, 80))
    assert (falling.most, falling.knee) == (90, 2)
    assert falling.needed(85) == pytest.approx(1.875)
    assert falling.needed(90) == 2


@pytest.mark.parametrize("points", [((), ()), ((1, 1), (2, 3)), ((1,), (0,)), ((2, 1), (3, 4)), ((1, 2), (3,))])
def test_points_that_are_no_curve_are_an_error(points: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    with pytest.raises(ConfigError, match="a service curve takes"):
        ServiceCurve(*points)


def test_the_configuration_with_most_points_is_the_curve() -> None:
    trials = [trial(1, 40), trial(4, 90), trial(8, 95), trial(8, 300, instances=2), trial(2, 0, failure="it crashed")]
    curve = curve_of(trials)
    assert curve == ServiceCurve((1, 4, 8), (40, 90, 95), (2, 8, 16))


def test_rows_of_a_request_count_once() -> None:
    point = Point.of({"m": {"callers": 2, "rows": 8}})
    assert curve_of([Outcome(point, {"rate": 80.0})]) == ServiceCurve((2,), (10,))


def test_a_model_has_to_be_named_where_there_are_several() -> None:
    both = Outcome(Point.of({"a": {"callers": 1}, "b": {"callers": 3}}), {"rate": 7.0})
    with pytest.raises(ConfigError, match="name one with --model"):
        curve_of([both])
    with pytest.raises(ConfigError, match="there is no 'c'"):
        curve_of([both], "c")
    assert curve_of([both], "b").concurrency == (3,)


def test_both_forms_of_a_result_are_read(tmp_path: Path) -> None:
    trials = [trial(1, 40).to_document(), trial(4, 90).to_document()]
    history, printed = tmp_path / "history.jsonl", tmp_path / "tuned.json"
    history.write_text("".join(json.dumps({"format": 1, **one}) + "\n" for one in trials))
    printed.write_text(json.dumps({"machine": {}, "trials": trials}, indent=2))
    assert read_curve(history) == read_curve(printed) == ServiceCurve((1, 4), (40, 90), (2, 8))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"trials": 3}', '{"trials": [{}]}', "no JSON"])
def test_a_file_that_is_no_result_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"cannot be read as a result|no trial has a number of callers"):
        read_curve(path)
    with pytest.raises(ConfigError, match="cannot be read as a result"):
        read_curve(tmp_path / "none.json")
