"""What a caller may give for a request, and what is said of anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from alipes.client.inference.reader import Reader
from alipes.client.inference.signature_reader import SignatureReader
from alipes.client.inference.stream_signature import Part, StateInput, StreamSignature
from alipes.client.signature import Signature, TensorSpec
from alipes.errors import InferError, InvalidArgument

X = TensorSpec("x", "FP32", (4, 2), open_batch=False)
OPEN = TensorSpec("x", "FP32", (4, 2), open_batch=True)
STREAM = StateInput(TensorSpec("stream", "FP32", (1, 2, 8)), (Part(("net/x",), 2),), windows=4)
PARTS = StateInput(
    TensorSpec("stream", "FP32", (1, 3, 8)), (Part(("net/strain", "other/x"), 2), Part(("net/witness",), 1)), windows=2
)


def reader(*specs: Any, cast: bool = False, pad: bool = True) -> Reader:
    plain = tuple(spec for spec in specs if isinstance(spec, TensorSpec))
    states = tuple(spec for spec in specs if isinstance(spec, StateInput))
    return Reader("m", StreamSignature(plain, states, ("y",), bool(states), 0), cast=cast, pad=pad)


def ones(*shape: int, kind: str = "float32") -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=kind).reshape(shape)


def refusal(reads: Reader, x: Any, last: bool = False) -> str:
    with pytest.raises(InvalidArgument) as caught:
        reads.read(x, last)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, InferError)
    return str(caught.value)


def test_one_array_does_where_the_model_takes_one() -> None:
    ((name, datatype, shape, array),), crop = reader(X).read(ones(4, 2), False)
    assert (name, datatype, shape, crop) == ("x", "FP32", (4, 2), None)
    assert np.array_equal(array, ones(4, 2))


def test_one_array_for_several_inputs_names_what_is_wanted() -> None:
    text = refusal(reader(X, PARTS), ones(4, 2))
    assert all(f'"{key}"' in text for key in ("x", "net/strain", "net/witness"))


def test_an_input_or_a_stream_that_is_missing_is_named() -> None:
    assert 'Missing input "x"' in refusal(reader(X, STREAM), {"net/x": ones(2, 8)})
    assert 'Missing state "net/x"' in refusal(reader(X, STREAM), {"x": ones(4, 2)})


def test_an_array_beside_those_that_are_wanted_is_ignored() -> None:
    assert len(reader(X).read({"x": ones(4, 2), "more": ones(1)}, False).tensors) == 1


def test_an_update_may_leave_out_the_axis_of_the_batch() -> None:
    reading = reader(STREAM).read(ones(2, 16)[:, :8], False)
    assert reading.tensors[0][2] == (1, 2, 8)
    assert reading.tensors[0][3].flags.c_contiguous


def test_parts_of_a_stream_are_joined_in_the_models_order() -> None:
    reading = reader(PARTS).read({"net/witness": ones(8) + 100, "net/strain": ones(2, 8)}, False)
    assert np.array_equal(reading.tensors[0][3], np.concatenate([ones(2, 8), ones(1, 8) + 100])[None])


def test_a_stream_of_two_models_is_passed_once_under_either_name() -> None:
    parts = {"other/x": ones(2, 8), "net/witness": ones(8)}
    assert np.array_equal(reader(PARTS).read(parts, False).tensors[0][3][0, :2], ones(2, 8))
    assert "are the same stream, but differ" in refusal(reader(PARTS), parts | {"net/strain": ones(2, 8) + 1})


def test_other_types_are_refused_or_cast() -> None:
    double = ones(4, 2, kind="float64")
    assert '.astype("float32")' in refusal(reader(X), double)
    assert reader(X, cast=True).read(double, False).tensors[0][3].dtype == np.float32
    assert "int64" in refusal(reader(TensorSpec("x", "BOOL", (4, 2)), cast=True), ones(4, 2, kind="int64"))


@pytest.mark.parametrize(
    ("spec", "value", "place"),
    [
        (X, np.full((4, 2), 1e39), "1e+39 at [0][0] does not fit float32"),
        (TensorSpec("x", "INT8", (4, 2)), ones(4, 2, kind="int64") + 126, "128 at [1][0] does not fit int8"),
    ],
)
def test_a_cast_changes_no_number(spec: TensorSpec, value: np.ndarray[Any, Any], place: str) -> None:
    text = f'"x": {place}'
    assert text in refusal(reader(spec, cast=True), value)
    with pytest.raises(InvalidArgument) as caught:
        SignatureReader(Signature("m", {"x": spec}, {}), cast=True).read({"x": value}, False)
    assert text in str(caught.value)


def test_something_that_is_no_array_is_refused() -> None:
    assert "expected a numpy array, got list" in refusal(reader(X), {"x": [1.0]})


@pytest.mark.parametrize("shape", [(5, 2), (4, 3), (4,), (4, 2, 1), (0, 2)])
def test_a_shape_that_does_not_fit_is_refused_with_both(shape: tuple[int, ...]) -> None:
    assert f"shape {list(shape)} does not match [4, 2]" in refusal(reader(X), ones(*shape))


def test_a_short_batch_is_filled_with_zeros_and_its_answer_cut() -> None:
    ((_, _, shape, array),), crop = reader(X).read(ones(3, 2), False)
    assert shape == (4, 2)
    assert np.array_equal(array[:3], ones(3, 2))
    assert not array[3].any()
    assert crop is not None
    assert [output.shape for output in crop.apply({"a": ones(4, 7), "b": ones(1, 8)}).values()] == [(3, 7), (1, 8)]


def test_a_short_batch_goes_as_it_is_where_the_server_leaves_its_size_open() -> None:
    reading = reader(OPEN).read(ones(3, 2), False)
    assert (reading.tensors[0][2], reading.crop) == ((3, 2), None)


def test_a_short_batch_is_refused_where_padding_is_off() -> None:
    assert "shape [3, 2] does not match [4, 2]" in refusal(reader(OPEN, pad=False), ones(3, 2))


def test_a_short_last_update_has_its_answers_cut() -> None:
    reading = reader(STREAM).read(ones(2, 6), True)
    assert np.array_equal(reading.tensors[0][3][0], np.pad(ones(2, 6), ((0, 0), (0, 2))))
    assert reading.crop is not None
    cut = reading.crop.apply({"windows": ones(4, 5), "mean": ones(1, 2, 8)})
    assert [output.shape for output in cut.values()] == [(3, 5), (1, 2, 6)]


def test_an_update_in_the_midst_of_a_sequence_is_whole() -> None:
    assert "can only be the last one" in refusal(reader(STREAM), ones(2, 6))
    assert "no multiple of the stride of 2" in refusal(reader(STREAM), ones(2, 5), last=True)
