"""Provisional loads: what is read of them, and what they go back to."""

from __future__ import annotations

import json

import pytest
from alipes.server.failures import LoadFailed
from alipes.server.override import Override
from alipes.server.provisional import Provisional, split_revert_after

OWN = Override(None)
FIRST, SECOND = Override('{"max_batch_size": 1}'), Override('{"max_batch_size": 2}')


def config(seconds: object, **other: object) -> Override:
    return Override(json.dumps({**other, "parameters": {"load.revert_after_s": {"string_value": seconds}, "a": {}}}))


def test_the_parameter_leaves_the_configuration() -> None:
    override, seconds = split_revert_after("m", config("30", max_batch_size=4))
    assert seconds == 30
    assert override is not None
    assert json.loads(str(override.config)) == {"max_batch_size": 4, "parameters": {"a": {}}}


@pytest.mark.parametrize(
    "override", [None, OWN, FIRST, Override("no JSON, load.revert_after_s"), Override('["load.revert_after_s"]')]
)
def test_any_other_load_is_left_alone(override: Override | None) -> None:
    assert split_revert_after("m", override) == (override, None)


@pytest.mark.parametrize("seconds", ["0", "-1", "3601", "nan", "soon", "", None, {}])
def test_seconds_out_of_bounds_are_refused(seconds: object) -> None:
    with pytest.raises(LoadFailed, match="expected a string_value from 1 to 3600 seconds"):
        split_revert_after("m", config(seconds))


def test_a_load_with_files_cannot_be_provisional() -> None:
    with pytest.raises(LoadFailed, match="a load with files"):
        split_revert_after("m", Override(config("30").config, {"1/model.onnx": b""}))


def test_it_goes_back_after_its_time_to_what_was_before() -> None:
    provisional = Provisional()
    provisional.settle("m", FIRST)
    assert provisional.base("m") == FIRST
    provisional.begin("m", provisional.base("m"), 30, now=100)
    assert provisional.due(129) == []
    assert provisional.take("m", 129) is None
    assert provisional.due(130) == ["m"]
    assert provisional.take("m", 130) == (FIRST, 30)
    assert provisional.due(200) == []
    assert provisional.take("m", 200) is None


def test_each_word_gives_it_more_time_and_changes_nothing_else() -> None:
    provisional = Provisional()
    provisional.begin("m", provisional.base("m"), 30, now=100)
    provisional.begin("m", provisional.base("m"), 20, now=120)
    assert provisional.take("m", 139) is None
    assert provisional.take("m", 140) == (OWN, 20)


def test_a_load_for_good_or_an_unload_ends_it() -> None:
    for end in (lambda one: one.settle("m", SECOND), lambda one: one.forget("m")):
        provisional = Provisional()
        provisional.begin("m", provisional.base("m"), 30, now=100)
        end(provisional)
        assert provisional.due(1000) == []
    assert Provisional().base("m") == OWN


def test_a_load_without_a_configuration_goes_back_at_once() -> None:
    provisional = Provisional()
    assert provisional.resolved("m", None) is None
    provisional.begin("m", provisional.base("m"), 30, now=100)
    assert provisional.resolved("m", None) == OWN
    assert provisional.resolved("m", SECOND) == SECOND


def test_files_of_a_load_request_cannot_be_gone_back_to() -> None:
    provisional = Provisional()
    provisional.settle("m", Override("{}", {"1/model.onnx": b""}))
    with pytest.raises(LoadFailed, match="nothing to go back to"):
        provisional.base("m")
    provisional.settle("m", OWN)
    assert provisional.base("m") == OWN
