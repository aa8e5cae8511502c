"""A framework's model is called once for requests that can be joined, and each request gets its own answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from alipes._core import InferenceRequest, InferenceResponse, Tensor
from alipes.signature import Port, Signature
from alipes.worker.frameworks.opened import OpenedModel
from alipes.worker.frameworks.runner import Runner

START, END = 1, 2

CONFIG = {
    "max_batch_size": 8,
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [1]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [1]}],
}


class Doubling(OpenedModel):
    """A model that notes how many rows each call has, and takes no negative number."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        self.rows.append(len(inputs["x"]))
        if (inputs["x"] < 0).any():
            raise ValueError("negative")
        return {"y": inputs["x"] * 2}


class Summing(Doubling):
    """A model that gives one row, whatever it gets."""

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        self.rows.append(len(inputs["x"]))
        return {"y": inputs["x"].sum(axis=0, keepdims=True)}


class Spelling(Doubling):
    """A model that gives texts."""

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        self.rows.append(len(inputs["x"]))
        return {"y": inputs["x"].astype(int).astype("S").astype(object)}


class Counting(OpenedModel):
    """A model that adds up what it gets, in a state of its own."""

    hidden, steps = "a sum", True

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        raise AssertionError("a request of a sequence is a step")

    def step(self, inputs: Mapping[str, np.ndarray], state: Any) -> tuple[Mapping[str, Any], Any]:
        after = (0 if state is None else state) + inputs["x"]
        if (inputs["x"] < 0).any():
            raise ValueError("negative")
        return {"y": after}, after


class Number(OpenedModel):
    """A model whose input has no axes."""

    signature = Signature((Port("x", "FP32", ()),), (Port("y", "FP32", ()),))

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        return {"y": np.float32(inputs["x"].ndim)}


def request(*values: float, **sequence: Any) -> InferenceRequest:
    tensor = Tensor("x", np.array(values, np.float32)[:, None])
    return InferenceRequest(inputs=[tensor], requested_output_names=["y"], model_name="m", **sequence)


def steps(most: int, *calls: tuple[int, float, int]) -> list[object]:
    """The answers to calls of sequences: id, value, flags."""
    config = CONFIG | {"sequence_batching": {"oldest": {"max_candidate_sequences": most}}}
    requests = [request(value, correlation_id=sequence, flags=flags) for sequence, value, flags in calls]
    return [found(response) for response in Runner(Counting(), config).execute(requests)]


def found(response: InferenceResponse) -> object:
    if response.has_error():
        return response.error().message().splitlines()[0]
    (tensor,) = response.output_tensors()
    assert tensor.name() == "y"
    return np.ravel(tensor.as_numpy()).tolist()


def answers(model: Any, *requests: InferenceRequest, kind: str = "TYPE_FP32") -> list[object]:
    config = CONFIG | {"output": [{"name": "y", "data_type": kind, "dims": [1]}]}
    return [found(response) for response in Runner(model, config).execute(list(requests))]


def test_joined_requests_are_one_call_and_get_their_own_rows() -> None:
    model = Doubling()
    assert answers(model, request(1), request(2, 3), request(4)) == [[2], [4, 6], [8]]
    assert model.rows == [4]


def test_a_bad_request_of_a_joint_call_fails_alone() -> None:
    model = Doubling()
    assert answers(model, request(1), request(-1), request(2)) == [[2], "ValueError: negative", [4]]
    assert model.rows == [3, 1, 1, 1]


def test_a_model_with_other_rows_is_called_request_by_request() -> None:
    model = Summing()
    assert answers(model, request(1, 2), request(3)) == [[3], [3]]
    assert model.rows == [3, 2, 1]


def test_texts_of_a_joint_call_are_split_too() -> None:
    model = Spelling()
    assert answers(model, request(1), request(2, 3), kind="TYPE_STRING") == [[b"1"], [b"2", b"3"]]
    assert model.rows == [3]


def test_each_sequence_has_the_state_of_its_own_model() -> None:
    calls = [(1, 4, START), (2, 4, START), (1, 1, 0), (2, 2, END), (1, 3, 0), (2, 9, START), (1, 5, START), (0, 7, 0)]
    assert steps(8, *calls) == [[4], [4], [5], [6], [8], [9], [5], [7]]


def test_a_step_that_fails_leaves_the_state_as_it_was() -> None:
    assert steps(8, (1, 4, START), (1, -1, 0), (1, 1, 0)) == [[4], "ValueError: negative", [5]]


def test_states_of_sequences_that_fell_silent_are_dropped_the_oldest_first() -> None:
    answers = steps(2, (1, 1, START), (2, 2, START), (1, 1, 0), (3, 3, START), (1, 1, 0), (3, 1, 0), (2, 1, 0))
    assert answers == [[1], [2], [2], [3], [3], [4], "ValueError: the state of sequence 2 is gone: start it again"]


def test_a_number_without_axes_reaches_the_model_without_axes() -> None:
    one = InferenceRequest(inputs=[Tensor("x", np.ones(1, np.float32))], requested_output_names=["y"], model_name="m")
    [response] = Runner(Number(), CONFIG | {"max_batch_size": 0}).execute([one])
    assert found(response) == [0]
