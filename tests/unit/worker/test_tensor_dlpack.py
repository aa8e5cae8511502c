"""`Tensor` to and from DLPack."""

from __future__ import annotations

import ctypes
import weakref
from typing import ClassVar

import numpy as np
import pytest
from alipes._core import Tensor, TritonModelException

FIXED_SIZE = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32"]
BF16 = 14


class Managed(ctypes.Structure):
    """`DLManagedTensor`, its `DLTensor` written out."""

    _fields_: ClassVar = [
        ("data", ctypes.c_void_p),
        ("device_kind", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


def managed(capsule: object) -> Managed:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Managed.from_address(pointer(capsule, b"dltensor"))


def bf16(count: int) -> Tensor:
    """A tensor of type BF16, which numpy cannot make."""
    capsule = Tensor("T", np.arange(count, dtype=np.uint16)).to_dlpack()
    managed(capsule).code = 4
    return Tensor.from_dlpack("T", capsule)


@pytest.mark.parametrize("kind", FIXED_SIZE)
def test_a_tensor_goes_through_dlpack_without_a_copy(kind: str) -> None:
    array = np.ones((2, 3), dtype=kind)
    back = Tensor.from_dlpack("B", Tensor("T", array))
    assert back.name() == "B"
    assert back.as_numpy().dtype == array.dtype
    assert np.shares_memory(back.as_numpy(), array)


def test_numpy_takes_a_tensor_and_gives_one() -> None:
    array = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.from_dlpack(Tensor("T", array)), array)
    np.testing.assert_array_equal(Tensor.from_dlpack("T", array).as_numpy(), array)


def test_a_tensor_lies_in_main_memory() -> None:
    assert Tensor("T", np.zeros(1)).__dlpack_device__() == (1, 0)


def test_bf16_goes_through_dlpack_and_not_to_numpy() -> None:
    tensor = bf16(3)
    assert tensor.triton_dtype() == BF16
    with pytest.raises(
        TritonModelException, match=r"^Tensor dtype is BF16 and cannot be converted to NumPy\. Use to_d"
    ):
        tensor.as_numpy()
    seen = managed(capsule := tensor.to_dlpack())
    assert (seen.code, seen.bits, seen.ndim, seen.shape[0], seen.strides[0]) == (4, 16, 1, 3, 1)
    del capsule


def test_a_capsule_keeps_the_elements() -> None:
    array = np.zeros(4)
    gone = weakref.ref(array)
    capsule = Tensor("T", array).to_dlpack()
    del array
    assert gone() is not None
    del capsule
    assert gone() is None


def test_a_view_of_an_imported_tensor_keeps_the_elements() -> None:
    array = np.zeros(4)
    gone = weakref.ref(array)
    view = Tensor.from_dlpack("T", Tensor("T", array).to_dlpack()).as_numpy()
    del array
    assert gone() is not None
    view[0] = 1
    del view
    assert gone() is None


def test_a_capsule_can_be_consumed_once() -> None:
    capsule = Tensor("T", np.zeros(1)).to_dlpack()
    Tensor.from_dlpack("A", capsule)
    with pytest.raises(TritonModelException, match="nobody has taken yet"):
        Tensor.from_dlpack("B", capsule)


def test_strings_are_refused() -> None:
    with pytest.raises(TritonModelException, match=r"^DLPack does not have support for string tensors\.$"):
        Tensor("S", np.array([b"b"], dtype=object)).to_dlpack()


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3).T, np.arange(8)[::2]], ids=["transposed", "strided"])
def test_elements_that_do_not_lie_in_order_are_refused(array: np.ndarray) -> None:
    text = "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
    with pytest.raises(TritonModelException) as refused:
        Tensor.from_dlpack("T", array)
    assert str(refused.value) == text


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 1, 1), (0, 5), ()])
def test_strides_of_what_has_one_element_or_none_do_not_matter(shape: tuple[int, ...]) -> None:
    assert Tensor.from_dlpack("T", np.zeros(shape).T).shape() == list(reversed(shape))


def test_an_unknown_element_type_is_refused() -> None:
    capsule = Tensor("T", np.zeros(1, dtype=np.float32)).to_dlpack()
    managed(capsule).lanes = 4
    with pytest.raises(TritonModelException, match="code 2, 32 bits and 4 lanes"):
        Tensor.from_dlpack("T", capsule)


@pytest.mark.parametrize(("device", "text"), [(2, "GPU is not available"), (10, "DLDevice type 10 is not support")])
def test_other_memory_is_refused(device: int, text: str) -> None:
    class Elsewhere:
        def __dlpack__(self, stream: object = None) -> object:
            raise AssertionError("must not be asked")

        def __dlpack_device__(self) -> tuple[int, int]:
            return device, 0

    with pytest.raises(TritonModelException, match=text):
        Tensor.from_dlpack("T", Elsewhere())


def test_what_has_no_dlpack_is_refused() -> None:
    with pytest.raises(TritonModelException, match="Provided tensor is not supported"):
        Tensor.from_dlpack("T", [1, 2])


def test_a_name_is_needed() -> None:
    with pytest.raises(TritonModelException, match=r"^Tensor name cannot be an empty string\.$"):
        Tensor.from_dlpack("", np.zeros(1))
