"""The packed form of strings."""

from __future__ import annotations

import numpy as np
import pytest
from alipes.worker.triton.byte_tensors import deserialize_bytes_tensor, serialize_byte_tensor
from hypothesis import given
from hypothesis import strategies as st


def test_elements_are_lengths_and_bytes() -> None:
    assert serialize_byte_tensor(np.array(["ab", b"c"], dtype=object)) == bytes.fromhex("0200000061620100000063")


def test_rows_follow_each_other() -> None:
    array = np.array([["a", "b"], ["c", "d"]], dtype=object)
    assert serialize_byte_tensor(array.T) == serialize_byte_tensor(np.array(["a", "c", "b", "d"], dtype=object))


@pytest.mark.parametrize(("value", "text"), [(3, b"3"), ("ö", "ö".encode()), (None, b"None"), (b"\xff", b"\xff")])
def test_any_object_is_its_text(value: object, text: bytes) -> None:
    packed = serialize_byte_tensor(np.array([value], dtype=object))
    assert packed == len(text).to_bytes(4, "little") + text


def test_byte_strings_are_packed() -> None:
    assert serialize_byte_tensor(np.array([b"ab"])) == b"\x02\0\0\0ab"


def test_other_arrays_have_no_packed_form() -> None:
    assert serialize_byte_tensor(np.zeros(2)) is None


def test_nothing_is_packed_as_nothing() -> None:
    assert serialize_byte_tensor(np.zeros(0, dtype=object)) == b""
    assert deserialize_bytes_tensor(b"").shape == (0,)


def test_unpacked_elements_are_bytes_in_one_dimension() -> None:
    array = deserialize_bytes_tensor(b"\x02\0\0\0ab\x01\0\0\0c")
    assert array.dtype == np.object_
    assert array.tolist() == [b"ab", b"c"]


@pytest.mark.parametrize("packed", [b"\x01\0\0", b"\x02\0\0\0a", b"\0\0\0\0\xff\xff\xff\xff"])
def test_a_cut_element_is_an_error(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"element \d ends at byte \d+, but there are \d+ bytes"):
        deserialize_bytes_tensor(packed)


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_unpacking_undoes_packing(elements: list[bytes]) -> None:
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    assert deserialize_bytes_tensor(serialize_byte_tensor(array)).tolist() == elements
