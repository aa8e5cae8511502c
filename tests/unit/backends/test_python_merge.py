"""What is taken over of the configuration that a model returns."""

from __future__ import annotations

import json
from typing import Any

import pytest
from alipes.backends.python.merge import merge_completed
from alipes.config.normalize import normalize
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.render import config_json
from alipes.errors import ConfigError


def config(text: str = "") -> Any:
    made = parse_pbtxt(f'name: "m" backend: "python" default_model_filename: "model.py" {text}')
    normalize(made)
    return made


def returned(made: Any, **changes: Any) -> dict[str, Any]:
    """What the model makes of a configuration that it is shown."""
    return {**json.loads(config_json(made)), **changes}


TENSOR = {"name": "X", "data_type": "TYPE_INT32", "dims": [2]}


def test_what_was_not_touched_stays() -> None:
    made = config('max_batch_size: 3 input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } dynamic_batching { }')
    before = config_json(made)
    merge_completed(made, returned(made))
    assert config_json(made) == before


def test_inputs_outputs_and_the_largest_batch_are_merged() -> None:
    made = config('input { name: "old" data_type: TYPE_FP32 dims: [ 1 ] }')
    merge_completed(made, returned(made, input=[{**TENSOR, "optional": True}], output=[TENSOR], max_batch_size=7))
    assert [(tensor.name, tensor.optional, list(tensor.dims)) for tensor in made.input] == [("X", True, [2])]
    assert [tensor.name for tensor in made.output] == ["X"]
    assert made.max_batch_size == 7


def test_a_first_scheduler_is_merged_and_gets_its_defaults() -> None:
    made = config()
    merge_completed(made, returned(made, dynamic_batching={}, max_batch_size=4))
    assert list(made.dynamic_batching.preferred_batch_size) == [4]


def test_the_scheduler_of_the_file_stays_as_it_was() -> None:
    made = config("max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 5 }")
    merge_completed(made, returned(made, dynamic_batching={"max_queue_delay_microseconds": 9}))
    assert made.dynamic_batching.max_queue_delay_microseconds == 5


@pytest.mark.parametrize(("other", "number"), [({"sequence_batching": {}}, 13), ({}, 0)])
def test_another_scheduler_than_the_one_of_the_file_is_refused(other: dict[str, Any], number: int) -> None:
    made = config("max_batch_size: 8 dynamic_batching { }")
    changed = returned(made, **other)
    del changed["dynamic_batching"]
    with pytest.raises(ConfigError) as caught:
        merge_completed(made, changed)
    assert caught.value.reason == (
        f"Internal: Cannot update scheduling choice from 11 to {number} when auto-completing."
    )


@pytest.mark.parametrize("decoupled", [True, False])
def test_the_transaction_policy_is_merged(decoupled: bool) -> None:
    made = config()
    assert not made.HasField("model_transaction_policy")
    merge_completed(made, returned(made, model_transaction_policy={"decoupled": decoupled}))
    assert made.HasField("model_transaction_policy")
    assert made.model_transaction_policy.decoupled == decoupled


def test_what_a_model_may_not_change_is_dropped() -> None:
    made = config('parameters { key: "a" value { string_value: "b" } }')
    merge_completed(made, returned(made, name="other", backend="other", parameters={}, instance_group=[{"count": 9}]))
    assert (made.name, made.backend, list(made.parameters), len(made.instance_group)) == ("m", "python", ["a"], 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inptu": []}, ": invalid name inptu: Cannot find field."),
        ({"input": [{**TENSOR, "data_type": "INT32"}]}, '(input[0].data_type): invalid value "INT32" for type'),
        ({"max_batch_size": "many"}, "Failed to parse max_batch_size field"),
    ],
)
def test_what_is_no_configuration_is_refused(changes: dict[str, Any], message: str) -> None:
    made = config()
    with pytest.raises(ConfigError) as caught:
        merge_completed(made, returned(made, **changes))
    assert str(caught.value).startswith("auto_complete_config of model 'm' returned no valid configuration: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_batch_size": -1}, "'max_batch_size' must be non-negative value for m"),
        (
            {"max_batch_size": 2, "dynamic_batching": {"preferred_batch_size": [4]}},
            "dynamic batching preferred size must be <= max batch size for m",
        ),
    ],
)
def test_merged_values_are_checked(changes: dict[str, Any], message: str) -> None:
    made = config()
    with pytest.raises(ConfigError, match=message):
        merge_completed(made, returned(made, **changes))


def test_a_cache_and_a_decoupled_model_do_not_go_together() -> None:
    made = config("response_cache { enable: true }")
    with pytest.raises(ConfigError, match="Response Cache does not currently support model m with 'decoupled'"):
        merge_completed(made, returned(made, model_transaction_policy={"decoupled": True}))
