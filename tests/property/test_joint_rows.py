"""Requests joined to one call and its outputs taken apart, beside what numpy makes of the same arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from alipes._core import InferenceRequest, InferenceResponse, Tensor, joint_inputs, joint_responses
from hypothesis import given
from hypothesis import strategies as st

Arrays = dict[str, np.ndarray]

TYPES = ["?", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8"]


def request(arrays: Arrays) -> InferenceRequest:
    tensors = [Tensor(name, array) for name, array in arrays.items()]
    return InferenceRequest(inputs=tensors, requested_output_names=["y"], model_name="m")


def split(responses: Sequence[InferenceResponse]) -> list[Arrays]:
    return [{tensor.name(): tensor.as_numpy() for tensor in response.output_tensors()} for response in responses]


@st.composite
def batches(draw: st.DrawFn) -> list[Arrays]:
    """Requests with inputs of one type and row each, and with some rows each."""
    ports = draw(
        st.dictionaries(
            st.text("ab_", min_size=1, max_size=3),
            st.tuples(st.sampled_from(TYPES), st.lists(st.integers(0, 3), max_size=2)),
            min_size=1,
            max_size=3,
        )
    )
    counts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    return [
        {name: random.integers(0, 2, (count, *row)).astype(kind) for name, (kind, row) in ports.items()}
        for count in counts
    ]


@given(batches())
def test_rows_are_joined_as_numpy_joins_them(batch: list[Arrays]) -> None:
    joined = joint_inputs([request(arrays) for arrays in batch])
    assert joined is not None
    inputs, rows = joined
    assert rows == [len(next(iter(arrays.values()))) for arrays in batch]
    assert list(inputs) == list(batch[0])
    for name, array in inputs.items():
        expected = np.concatenate([arrays[name] for arrays in batch])
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
        assert array.tobytes() == expected.tobytes()
        assert array.flags.writeable
    responses = joint_responses(list(inputs.items()), rows)
    assert responses is not None
    del inputs, joined  # the responses hold the arrays
    for found, arrays in zip(split(responses), batch, strict=True):
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            assert found[name].tobytes() == array.tobytes()


ROW = np.zeros((1, 3), np.float32)


@pytest.mark.parametrize(
    "second",
    [
        {"x": np.zeros((1, 4), np.float32)},
        {"x": np.zeros((1, 3), np.float64)},
        {"x": np.zeros((1, 3, 1), np.float32)},
        {"z": ROW},
        {"x": ROW, "z": ROW},
        {},
    ],
    ids=["wider", "another type", "another rank", "another name", "one more", "none"],
)
def test_requests_that_differ_are_not_joined(second: Arrays) -> None:
    first = request({"x": ROW})
    assert joint_inputs([first, request({"x": ROW})]) is not None
    assert joint_inputs([first, request(second)]) is None
    assert joint_inputs([request(second), first]) is None


def test_inputs_with_rows_of_their_own_are_not_joined() -> None:
    assert joint_inputs([request({"x": ROW, "y": np.zeros((2, 3), np.float32)})] * 2) is None


@pytest.mark.parametrize("array", [np.array([[b"a"]], object), np.array(1, np.float32)], ids=["texts", "no axis"])
def test_inputs_without_rows_of_one_size_are_not_joined(array: np.ndarray) -> None:
    assert joint_inputs([request({"x": array})] * 2) is None


class Kind(np.ndarray):
    """An array of another class."""


@pytest.mark.parametrize(
    "output",
    [
        np.zeros((3, 2), np.float32),
        np.zeros((2, 4), np.float32)[:, ::2],
        np.zeros((2, 2), ">f4"),
        np.array(["a", "b"], object),
        np.array(1, np.float32),
        np.zeros((2, 2), np.float32).view(Kind),
        [[1.0], [2.0]],
    ],
    ids=["other rows", "not row by row", "foreign order", "texts", "no axis", "another class", "a list"],
)
def test_other_outputs_are_left_to_python(output: Any) -> None:
    assert joint_responses([("y", np.zeros((2, 2), np.float32)), ("z", output)], [1, 1]) is None


def test_what_is_no_request_is_refused() -> None:
    with pytest.raises(TypeError):
        joint_inputs([object()])  # type: ignore[list-item]
