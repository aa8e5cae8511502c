"""`Tensor` over arrays with elements of a fixed size."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from alipes._core import Tensor, TritonModelException

NUMBERS = {
    "bool": 1,
    "uint8": 2,
    "uint16": 3,
    "uint32": 4,
    "uint64": 5,
    "int8": 6,
    "int16": 7,
    "int32": 8,
    "int64": 9,
    "float16": 10,
    "float32": 11,
    "float64": 12,
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_tensor_knows_its_datatype_and_shape(kind: str) -> None:
    tensor = Tensor("T", np.ones((2, 3), dtype=kind))
    assert tensor.name() == "T"
    assert tensor.triton_dtype() == NUMBERS[kind]
    assert tensor.shape() == [2, 3]
    assert tensor.is_cpu()


def test_both_long_integers_are_64_bits_wide() -> None:
    assert Tensor("T", np.zeros(1, dtype=np.longlong)).triton_dtype() == NUMBERS["int64"]
    assert Tensor("T", np.zeros(1, dtype=np.ulonglong)).triton_dtype() == NUMBERS["uint64"]


def test_a_contiguous_array_is_not_copied() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert Tensor("T", array).as_numpy() is array


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.arange(12)[::2],
        np.broadcast_to(np.int32(7), (2, 2)),
        np.arange(3, dtype=">i4"),
        np.asfortranarray(np.ones((2, 3), dtype=np.float32)),
    ],
    ids=["transposed", "strided", "broadcast", "big-endian", "fortran"],
)
def test_an_array_that_does_not_lie_in_order_is_copied(array: np.ndarray) -> None:
    view = Tensor("T", array).as_numpy()
    assert view.flags.c_contiguous
    assert view.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(view, array)


def test_a_scalar_and_an_empty_array_keep_their_shape() -> None:
    assert Tensor("T", np.array(3.5)).shape() == []
    assert Tensor("T", np.zeros((0, 4))).shape() == [0, 4]


def test_a_tensor_lasts_as_long_as_it_is_held_and_no_longer() -> None:
    array = np.zeros(4)
    gone = weakref.ref(array)
    tensor = Tensor("T", array)
    del array
    assert gone() is not None
    del tensor
    assert gone() is None


def test_a_name_is_needed() -> None:
    with pytest.raises(TritonModelException, match=r"^Tensor name cannot be an empty string\.$"):
        Tensor("", np.zeros(1))


def test_types_of_arguments_are_looked_at_before_the_name() -> None:
    with pytest.raises(TypeError, match=r"^__init__\(\): incompatible constructor arguments\."):
        Tensor("", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["complex64", "U3", "M8[s]", "V4", "longdouble", [("a", "i4")]])
def test_a_type_without_a_datatype_is_refused(kind: object) -> None:
    with pytest.raises(TritonModelException, match=r"^NumPy dtype is not supported\.$"):
        Tensor("T", np.zeros(2, dtype=kind))  # type: ignore[call-overload]


@pytest.mark.parametrize("thing", [[1, 2], 3.0, None, np.float32(1)], ids=["list", "number", "none", "numpy scalar"])
def test_what_is_no_array_is_a_type_error(thing: object) -> None:
    with pytest.raises(TypeError, match=r"__init__\(\): incompatible constructor arguments\."):
        Tensor("T", thing)  # type: ignore[arg-type]


def test_an_array_may_change_its_values_but_not_its_layout() -> None:
    array = np.arange(4, dtype=np.int32)
    tensor = Tensor("T", array)
    array[0] = 7
    assert tensor.as_numpy()[0] == 7
    array.resize(2, refcheck=False)
    assert tensor.shape() == [2]


def test_classes_show_the_module_that_models_know() -> None:
    assert repr(Tensor("T", np.zeros(1))).startswith("<c_python_backend_utils.Tensor object at 0x")


def test_the_name_of_a_tensor_may_be_bytes() -> None:
    assert Tensor("ü".encode(), np.zeros(1)).name() == "ü"
