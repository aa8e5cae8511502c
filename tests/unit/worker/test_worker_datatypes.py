"""Numbers, names and numpy types of Triton's datatypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from alipes.worker.triton.datatypes import (
    TRITON_STRING_TO_NUMPY,
    numpy_to_triton_type,
    triton_string_to_numpy,
    triton_to_numpy_type,
)

NUMBERS = {
    np.bool_: 1,
    np.uint8: 2,
    np.uint16: 3,
    np.uint32: 4,
    np.uint64: 5,
    np.int8: 6,
    np.int16: 7,
    np.int32: 8,
    np.int64: 9,
    np.float16: 10,
    np.float32: 11,
    np.float64: 12,
    np.object_: 13,
}


@pytest.mark.parametrize(("kind", "number"), NUMBERS.items())
def test_types_and_numbers_belong_together(kind: Any, number: int) -> None:
    assert numpy_to_triton_type(kind) == number
    assert numpy_to_triton_type(np.dtype(kind)) == number
    assert triton_to_numpy_type(number) is kind


@pytest.mark.parametrize("number", [0, 14, 99])
def test_other_numbers_have_no_type(number: int) -> None:
    assert triton_to_numpy_type(number) is None


@pytest.mark.parametrize("kind", [np.bytes_, np.dtype("S4")])
def test_byte_strings_are_strings(kind: Any) -> None:
    assert numpy_to_triton_type(kind) == 13


@pytest.mark.parametrize("kind", [np.complex64, np.str_, "nonsense", np.datetime64])
def test_other_types_have_no_number(kind: Any) -> None:
    assert numpy_to_triton_type(kind) is None


def test_names_lead_to_types() -> None:
    assert {name: np.dtype(triton_string_to_numpy(name)).type for name in TRITON_STRING_TO_NUMPY} == {
        "TYPE_BOOL": np.bool_,
        "TYPE_STRING": np.object_,
        **{
            f"TYPE_{'FP' if kind.kind == 'f' else kind.name.rstrip('0123456789').upper()}{kind.itemsize * 8}": kind.type
            for kind in map(np.dtype, list(NUMBERS)[1:-1])
        },
    }


@pytest.mark.parametrize("name", ["FP32", "TYPE_BF16"])
def test_a_name_without_a_type_is_a_key_error(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        triton_string_to_numpy(name)
