"""Arrays are checked against what a model declares, with words that say what to do."""

from __future__ import annotations

import re

import numpy as np
import pytest
from alipes.client.signature import Signature, TensorSpec, read_signature
from alipes.errors import InvalidArgument

METADATA = {
    "name": "m",
    "inputs": [
        {"name": "X", "datatype": "FP32", "shape": ["-1", "4"]},
        {"name": "N", "datatype": "INT64", "shape": [1]},
    ],
    "outputs": [{"name": "Y", "datatype": "FP32", "shape": [-1, 2]}],
}
SIGNATURE = read_signature(METADATA, {"input": [{"name": "X"}, {"name": "N", "optional": True}]})


def one(datatype: str, shape: tuple[int, ...] = (-1,)) -> Signature:
    return Signature("m", {"X": TensorSpec("X", datatype, shape)}, {})


def test_a_signature_knows_types_shapes_and_what_is_required() -> None:
    assert SIGNATURE.inputs["X"] == TensorSpec("X", "FP32", (-1, 4))
    assert SIGNATURE.outputs["Y"].dtype == np.float32
    assert SIGNATURE.required == {"X"}
    assert read_signature(METADATA, None).required == frozenset()


def test_a_fitting_array_is_sent_as_it_is() -> None:
    array = np.zeros((3, 4), np.float32)
    ((name, datatype, shape, sent),) = SIGNATURE.tensors({"X": array})
    assert (name, datatype, shape) == ("X", "FP32", (3, 4))
    assert sent is array


def test_an_array_whose_rows_lie_apart_is_copied() -> None:
    array = np.zeros((4, 3), np.float32).T
    assert SIGNATURE.tensors({"X": array})[0][3].flags.c_contiguous


def test_lists_become_arrays_of_the_declared_type() -> None:
    assert one("FP64").tensors([1, 2])[0][3].dtype == np.float64
    with pytest.raises(InvalidArgument, match="input 'X' of model 'm' takes INT8"):
        one("INT8").tensors(["word"])


@pytest.mark.parametrize(
    ("datatype", "values", "place"),
    [
        ("INT8", [1, 128], r"128 at [1] does not fit int8"),
        ("INT8", [[-129]], r"-129 at [0][0] does not fit int8"),
        ("UINT8", [-1], r"-1 at [0] does not fit uint8"),
        ("UINT8", [1.0, 1.5], r"1.5 at [1] does not fit uint8"),
        ("INT32", [float("nan")], r"nan at [0] does not fit int32"),
        ("INT64", [2**63], r"9223372036854775808 at [0] does not fit int64"),
        ("INT64", [float(2**63)], r"at [0] does not fit int64"),
        ("UINT64", [0, -1], r"-1 at [1] does not fit uint64"),
        ("BOOL", [1, 2], r"2 at [1] does not fit bool"),
        ("FP16", [70000.0], r"70000.0 at [0] does not fit float16"),
        ("FP32", [1e39], r"1e+39 at [0] does not fit float32"),
        ("INT32", 2**31, r"2147483648 does not fit int32"),
        ("INT8", [np.int64(300)], r"300 at [0] does not fit int8"),
    ],
)
def test_numbers_of_a_list_that_do_not_fit_are_refused_with_their_place(
    datatype: str, values: object, place: str
) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(place)):
        one(datatype, np.shape(values)).tensors({"X": values})


@pytest.mark.parametrize(
    ("datatype", "values"),
    [
        ("INT8", [-128, 127.0, True]),
        ("UINT64", [0, 2**64 - 1]),
        ("INT64", [-(2**63), 2**63 - 1]),
        ("FP16", [65504.0, float("inf")]),
        ("FP32", [2**24 + 1, float("nan")]),
        ("BOOL", [0, 1, True]),
        ("INT32", []),
    ],
)
def test_numbers_of_a_list_that_fit_are_sent(datatype: str, values: list[float]) -> None:
    ((_, _, _, sent),) = one(datatype).tensors({"X": values})
    np.testing.assert_array_equal(sent, np.array(values, sent.dtype))


def test_another_byte_order_is_turned_round() -> None:
    sent = one("INT32").tensors(np.array([1], ">i4"))[0][3]
    assert (sent.dtype, sent.tolist()) == (np.dtype("<i4"), [1])


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"X": np.zeros((1, 4))}, "takes FP32, the array has float64: convert it with .astype(np.float32)"),
        ({"X": np.zeros((1, 3), np.float32)}, "takes the shape [-1,4], the array has [1,3]"),
        ({"X": np.zeros(4, np.float32)}, "takes the shape [-1,4], the array has [4]"),
        ({"Z": np.zeros(4)}, "model 'm' has no input 'Z': its inputs are 'N', 'X'"),
        ({"N": np.zeros(1, np.int64)}, "model 'm' also takes the input 'X'"),
        (np.zeros(4), "model 'm' has the inputs 'N', 'X': pass a dictionary"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_was_seen_and_expected(inputs: object, text: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(text)) as raised:
        SIGNATURE.tensors(inputs)  # type: ignore[arg-type]
    assert raised.value.model == "m"


def test_text_of_any_kind_is_accepted_as_bytes() -> None:
    for words in (["a", "b"], np.array(["a", "b"]), np.array([b"a", b"b"]), np.array(["a", b"b"], object)):
        assert one("BYTES").tensors(words)[0][2] == (2,)
    with pytest.raises(InvalidArgument, match="takes BYTES, the array has int64"):
        one("BYTES").tensors(np.zeros(2, np.int64))


def test_bf16_is_rounded_to_the_nearest_and_keeps_what_is_no_number() -> None:
    values = np.array([1.0, 1.00390625, 1.01171875, -2.5, np.inf, np.nan], np.float32)
    bits = one("BF16").tensors(values)[0][3]
    assert bits.dtype == np.uint16
    back = (bits.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(back, np.array([1.0, 1.0, 1.015625, -2.5, np.inf, np.nan], np.float32))


@pytest.mark.parametrize(
    ("shape", "sized", "is_open"), [((-1, 4), (3, 4), True), ((2, -1), (2, 3), False), ((), (), False)]
)
def test_open_sizes_become_the_batch_size(shape: tuple[int, ...], sized: tuple[int, ...], is_open: bool) -> None:
    spec = TensorSpec("X", "FP32", shape).sized(3)
    assert (spec.shape, spec.open_batch) == (sized, is_open)
