"""The packed form of string tensors: each element is its length in four bytes, little end first, and its bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from alipes.datatypes import pack_texts, unpack_texts

__all__ = ["deserialize_bytes_tensor", "serialize_byte_tensor"]


def serialize_byte_tensor(input_tensor: npt.NDArray[Any]) -> bytes | None:
    """Packs the elements in C order: bytes as they are, anything else as its text in UTF-8.

    Returns:
        ``None`` where the array holds no Python objects and no bytes.
    """
    if input_tensor.size == 0:
        return b""
    if input_tensor.dtype.kind not in "OS":
        return None
    elements = input_tensor.ravel(order="C").tolist()
    return pack_texts(one if isinstance(one, bytes) else str(one).encode() for one in elements)


def deserialize_bytes_tensor(encoded_tensor: Any) -> npt.NDArray[np.object_]:
    """Unpacks elements into an array of one dimension whose items are `bytes`.

    Raises:
        ValueError: If the last element is cut off.
    """
    elements = unpack_texts(bytes(encoded_tensor))
    array = np.empty(len(elements), dtype=np.object_)
    array[:] = elements
    return array
