"""Points, spaces and knobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alipes import ConfigError
from alipes.config.pbtxt import parse_pbtxt
from alipes.tune import Axis, Point, Space
from alipes.tune.variant import changed

SPACE = Space.of({"m": {"instances": [2, 1], "preferred": [(4,), (4, 8)]}, "n": {"callers": [1, 8, 64]}})


def test_a_space_has_a_point_for_each_choice() -> None:
    points = list(SPACE.points())
    assert len(points) == len(set(points)) == SPACE.size == 12
    assert points[0].to_document() == {"m": {"instances": 1, "preferred": (4,)}, "n": {"callers": 1}}
    assert points[1].of_model("n") == {"callers": 8}
    assert [SPACE.at(SPACE.places(point)) for point in points] == points


def test_a_point_outside_has_the_places_of_its_nearest_values() -> None:
    outside = Point.of({"m": {"instances": 7, "preferred": (9,)}, "n": {"callers": 4}})
    assert SPACE.at(SPACE.places(outside)).to_document() == {
        "m": {"instances": 2, "preferred": (4,)},
        "n": {"callers": 1},
    }


def test_a_point_survives_json_and_is_the_same_in_any_order() -> None:
    point = Point.of({"m": {"instances": 2, "preferred": (4, 8)}, "n": {"callers": 8}})
    assert Point.from_document(json.loads(json.dumps(point.to_document()))) == point
    assert Point.of({"n": {"callers": 8}, "m": {"preferred": (4, 8), "instances": 2}}).key == point.key
    assert str(point) == "m: instances 2, preferred 4+8; n: callers 8"


def test_the_load_is_no_part_of_the_variant() -> None:
    first, second = (Point.of({"m": {"instances": 2, "callers": callers}}) for callers in (1, 8))
    assert first.variant == second.variant == Point.of({"m": {"instances": 2}})
    assert first.differences(second) == [("m", "callers", 1, 8)]


@pytest.mark.parametrize(
    ("knob", "values", "text"),
    [
        ("instances", (0,), "whole numbers from 1 on, not 0"),
        ("instances", (), "not nothing"),
        ("instance", (1,), "there is no knob 'instance'"),
        ("preferred", ((),), "whole numbers from 1 on"),
    ],
)
def test_values_that_mean_nothing_are_refused(knob: str, values: tuple[int, ...], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Axis("m", knob, values)


def test_an_unknown_knob_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        Axis("m", "instanses", (1,))
    assert caught.value.hint == "did you mean 'instances'?"


def test_a_space_that_nobody_can_search_is_refused() -> None:
    with pytest.raises(ConfigError, match="the limit is 1,000,000"):
        Space(tuple(Axis(name, "instances", tuple(range(1, 101))) for name in "abcd"))
    with pytest.raises(ConfigError, match="twice"):
        Space((Axis("m", "instances", (1,)), Axis("m", "instances", (2,))))


@pytest.mark.parametrize(
    ("written", "values", "expected"),
    [
        ("", {"instances": 3}, "instance_group { count: 3 kind: KIND_CPU }"),
        (
            'instance_group { name: "a" kind: KIND_GPU count: 1 } instance_group { count: 4 }',
            {"instances": 2},
            'instance_group { name: "a" kind: KIND_GPU count: 2 }',
        ),
        ("", {"max_batch_size": 8}, "max_batch_size: 8 dynamic_batching { }"),
        ("max_batch_size: 4", {"max_batch_size": 1}, "max_batch_size: 1"),
        (
            "max_batch_size: 8 dynamic_batching { preferred_batch_size: [4, 8] }",
            {"max_batch_size": 4},
            "max_batch_size: 4 dynamic_batching { preferred_batch_size: 4 }",
        ),
        (
            "sequence_batching { }",
            {"max_batch_size": 8},
            "max_batch_size: 8 sequence_batching { }",
        ),
        ("", {"queue_delay_us": 100}, "dynamic_batching { max_queue_delay_microseconds: 100 }"),
        ("", {"preferred": (4, 8)}, "dynamic_batching { preferred_batch_size: [4, 8] }"),
        (
            "",
            {"engine_threads": 2},
            'parameters { key: "intra_op_thread_count" value { string_value: "2" } }',
        ),
    ],
)
def test_a_value_stands_in_its_place(written: str, values: dict[str, int], expected: str) -> None:
    before = parse_pbtxt(written)
    assert changed(before, values) == parse_pbtxt(expected)
    assert before == parse_pbtxt(written)


def test_a_sequence_model_has_no_queue_delay(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no dynamic batching"):
        changed(parse_pbtxt('name: "m" sequence_batching { }'), {"queue_delay_us": 100})
