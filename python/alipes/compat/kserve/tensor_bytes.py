"""Elements of BYTES tensors as they are sent: each with its length in front, in four bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from alipes.compat.kserve.errors import InferenceError
from alipes.datatypes import pack_texts, unpack_texts

__all__ = ["deserialize_bytes_tensor", "serialize_byte_tensor", "serialized"]


def serialize_byte_tensor(input_tensor: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The elements as one element of an array without dimensions; an empty array where there are none.

    Args:
        input_tensor: Objects or bytes. Objects that are no bytes are written as texts.

    Raises:
        InferenceError: If the array has another type.
    """
    if input_tensor.size == 0:
        return np.empty([0], dtype=np.object_)
    return np.asarray(serialized(input_tensor), dtype=np.object_)


def serialized(array: npt.NDArray[Any]) -> bytes:
    """The elements of an array of objects, bytes or texts, in order.

    Raises:
        InferenceError: If the array has another type.
    """
    if array.dtype.kind not in "OSU":
        raise InferenceError("cannot serialize bytes tensor: invalid datatype")
    return pack_texts(one if isinstance(one, bytes) else str(one).encode() for one in array.ravel().tolist())


def deserialize_bytes_tensor(encoded_tensor: bytes) -> npt.NDArray[Any]:
    """The elements, as a row of objects.

    Raises:
        ValueError: If the last one is cut off.
    """
    elements = unpack_texts(encoded_tensor)
    array = np.empty(len(elements), dtype=np.object_)
    array[:] = elements
    return array
