"""The packed form of string tensors: each element is its length in four bytes, little end first, and its bytes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

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
    parts: list[bytes] = []
    for value in input_tensor.ravel(order="C").tolist():
        element = value if isinstance(value, bytes) else str(value).encode()
        parts += (struct.pack("<I", len(element)), element)
    return b"".join(parts)


def deserialize_bytes_tensor(encoded_tensor: Any) -> npt.NDArray[np.object_]:
    """Unpacks elements into an array of one dimension whose items are `bytes`.

    Raises:
        ValueError: If the last element is cut off.
    """
    packed = bytes(encoded_tensor)
    elements: list[bytes] = []
    position = 0
    while position < len(packed):
        start = position + 4
        end = start + int.from_bytes(packed[position:start], "little")
        if end > len(packed):
            raise ValueError(f"element {len(elements)} ends at byte {end}, but there are {len(packed)} bytes")
        elements.append(packed[start:end])
        position = end
    array = np.empty(len(elements), dtype=np.object_)
    array[:] = elements
    return array
