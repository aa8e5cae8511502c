"""What a client says of its model, read as scripts of hermes read it and as documents."""

from __future__ import annotations

import copy
import json

import pytest
from alipes.client.inference.declared import DeclaredState, Inputs
from alipes.client.inference.document import Answered
from alipes.client.inference.stream_signature import Part, StateInput
from alipes.client.signature import TensorSpec
from alipes.config.schema import new_config

SPECS = (TensorSpec("gain", "FP32", (4, 2), open_batch=True), TensorSpec("mask", "BOOL", (4,)))


def test_inputs_are_found_by_position_and_by_name() -> None:
    inputs = Inputs(SPECS)
    assert [one.name for one in inputs] == ["gain", "mask"]
    assert inputs[1] is inputs["mask"]
    assert [one.name for one in inputs[:1]] == ["gain"]
    assert len(inputs) == 2
    with pytest.raises(KeyError, match="no-such"):
        inputs["no-such"]
    with pytest.raises(IndexError):
        inputs[2]


def test_what_an_input_is_can_be_read_and_called() -> None:
    gain = Inputs(SPECS)["gain"]
    assert (gain.name, gain.datatype, gain.shape, gain.open_batch) == ("gain", "FP32", (4, 2), True)
    assert (gain.name(), gain.datatype(), gain.shape()) == ("gain", "FP32", [4, 2])
    assert {gain.name: 1}["gain"] == 1
    assert repr(gain) == "<input gain: FP32 [4, 2]>"


def test_a_stream_is_its_input_and_the_shape_of_each_of_its_parts() -> None:
    parts = (Part(("net/x", "other/x"), 2), Part(("thin/x",), 1))
    state = DeclaredState(StateInput(TensorSpec("update", "FP32", (1, 3, 16)), parts, windows=2))
    tensor, shapes = state
    assert tensor.name() == "update"
    assert shapes == {"net/x": (1, 2, 16), "other/x": (1, 2, 16), "thin/x": (1, 1, 16)}
    assert (state.tensor, state.parts, state.windows) == (tensor, parts, 2)


def test_an_answer_is_a_document_and_a_message() -> None:
    config = new_config(name="m", input=[{"name": "x", "data_type": 11, "dims": [-1, 4]}])
    answer = Answered(config)
    assert answer.input[0].name == answer["input"][0]["name"] == "x"
    assert (answer.input[0].data_type, answer["input"][0]["data_type"]) == (11, "TYPE_FP32")
    assert (answer.max_batch_size, "max_batch_size" in answer) == (0, False)
    assert not answer.HasField("sequence_batching")
    assert json.loads(json.dumps(answer)) == answer
    assert copy.deepcopy(answer).input[0].name == "x"
    with pytest.raises(AttributeError):
        answer.no_such_field  # noqa: B018
