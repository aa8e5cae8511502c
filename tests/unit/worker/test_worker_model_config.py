"""What a model may do to its configuration, and how contradictions are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from alipes.worker.triton.model_config import ModelConfig


def config(**fields: Any) -> ModelConfig:
    return ModelConfig(json.dumps({"name": "m", "max_batch_size": 0, "input": [], "output": [], **fields}))


X = {"name": "X", "data_type": "TYPE_FP32", "dims": [2]}


def test_everything_that_is_missing_can_be_added() -> None:
    made = config()
    made.add_input({**X, "optional": True})
    made.add_output({"name": "Y", "data_type": "TYPE_FP32", "dims": (-1, np.int64(3))})
    made.set_max_batch_size(4)
    made.set_dynamic_batching()
    made.set_model_transaction_policy({"decoupled": True})
    assert json.loads(json.dumps(made.as_dict())) == {
        "name": "m",
        "max_batch_size": 4,
        "input": [{**X, "optional": True}],
        "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [-1, 3]}],
        "dynamic_batching": {},
        "model_transaction_policy": {"decoupled": True},
    }


def test_a_configuration_without_lists_gets_them() -> None:
    made = ModelConfig('{"name": "m"}')
    made.add_input(X)
    made.set_max_batch_size(2)
    assert made.as_dict()["input"] == [X]


def test_a_declared_tensor_is_completed() -> None:
    made = config(input=[{"name": "X", "data_type": "TYPE_INVALID", "dims": [], "label": "kept"}])
    made.add_input(X)
    assert made.as_dict()["input"] == [{**X, "label": "kept"}]


def test_settings_of_dynamic_batching_stay() -> None:
    made = config(dynamic_batching={"preserve_ordering": True})
    made.set_dynamic_batching()
    assert made.as_dict()["dynamic_batching"] == {"preserve_ordering": True}


def test_an_empty_policy_says_nothing() -> None:
    made = config(model_transaction_policy={"decoupled": True})
    made.set_model_transaction_policy({})
    assert made.as_dict()["model_transaction_policy"] == {"decoupled": True}


PLACE = "in auto-complete-config function for model 'm'"

REFUSALS: list[tuple[dict[str, Any], str, list[Any], str]] = [
    (
        {"max_batch_size": 8},
        "set_max_batch_size",
        [4],
        "configuration specified max_batch_size 8, but in auto-complete-config function for model 'm' specified "
        "max_batch_size 4",
    ),
    (
        {"sequence_batching": {}},
        "set_dynamic_batching",
        [],
        "Configuration specified scheduling_choice as 'sequence_batching', but auto-complete-config function for model "
        "'m' tries to set scheduling_choice as 'dynamic_batching'",
    ),
    (
        {"ensemble_scheduling": {}},
        "set_dynamic_batching",
        [],
        "Configuration specified scheduling_choice as 'ensemble_scheduling', but auto-complete-config function for "
        "model 'm' tries to set scheduling_choice as 'dynamic_batching'",
    ),
    (
        {},
        "add_input",
        [{**X, "shape": [1]}],
        f"input 'X' {PLACE} contains property other than 'name', 'data_type', 'dims' and 'optional'.",
    ),
    (
        {},
        "add_output",
        [{**X, "optional": True}],
        f"output 'X' {PLACE} contains property other than 'name', 'data_type' and 'dims'.",
    ),
    ({}, "add_input", [{"dims": [1]}], f"input {PLACE} is missing 'name' property."),
    ({}, "add_input", [{"name": "X"}], f"input 'X' {PLACE} is missing 'data_type' property."),
    (
        {},
        "add_output",
        [{"name": "X", "data_type": "TYPE_FP32"}],
        f"output 'X' {PLACE} is missing 'dims' property.",
    ),
    (
        {"input": [{**X, "data_type": "TYPE_INT8"}]},
        "add_input",
        [X],
        "unable to load model 'm', configuration expects datatype TYPE_INT8 for input 'X', model provides TYPE_FP32",
    ),
    (
        {"output": [{**X, "dims": [3]}]},
        "add_output",
        [X],
        "model 'm', tensor 'X': the model expects dims [2] but the model configuration specifies dims [3]",
    ),
    (
        {"input": [{**X, "optional": False}]},
        "add_input",
        [{**X, "optional": True}],
        "model 'm', tensor 'X': the model expects optional True but the model configuration specifies optional False",
    ),
    (
        {},
        "set_model_transaction_policy",
        [{"decoupled": True, "more": 1}],
        "model transaction property in auto-complete-config function for model 'm' contains property other than "
        "'decoupled'.",
    ),
    (
        {"model_transaction_policy": {"decoupled": False}},
        "set_model_transaction_policy",
        [{"decoupled": True}],
        "trying to change decoupled property in auto-complete-config for model 'm', which is already set to 'False'.",
    ),
]


@pytest.mark.parametrize(("fields", "method", "arguments", "text"), REFUSALS)
def test_a_contradiction_is_a_value_error(fields: dict[str, Any], method: str, arguments: list[Any], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        getattr(config(**fields), method)(*arguments)
    assert str(caught.value) == text
