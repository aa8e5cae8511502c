"""A framework's model is called once for requests that can be joined, and each request gets its own answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from alipes._core import InferenceRequest, InferenceResponse, Tensor
from alipes.worker.frameworks.runner import Runner

CONFIG = {
    "max_batch_size": 8,
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [1]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [1]}],
}


class Doubling:
    """A model that notes how many rows each call has, and takes no negative number."""

    signature = None
    joins = True

    def __init__(self) -> None:
        self.rows: list[int] = []

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        self.rows.append(len(inputs["x"]))
        if (inputs["x"] < 0).any():
            raise ValueError("negative")
        return {"y": inputs["x"] * 2}

    def close(self) -> None:
        pass


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


def request(*values: float) -> InferenceRequest:
    tensor = Tensor("x", np.array(values, np.float32)[:, None])
    return InferenceRequest(inputs=[tensor], requested_output_names=["y"], model_name="m")


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
