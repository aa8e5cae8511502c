"""The protocol's datatypes in numpy: the types of arrays, and texts as they are sent."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from alipes import _core

if TYPE_CHECKING:
    import numpy as np

__all__ = ["array_type", "datatype_of", "numpy_type", "pack_texts", "unpack_texts"]

_LENGTH_BYTES: Final = 4
"""Of the length in front of each text, little end first."""


@cache
def numpy_type(datatype: str) -> np.dtype[Any] | None:
    """The numpy type of a datatype of fixed size; `None` for `BYTES`, for `BF16`, which numpy lacks, and for others."""
    import numpy as np

    names = {row.name: row.numpy_name for row in _core.datatypes() if row.size is not None}
    name = names.get(datatype)
    return None if name is None else np.dtype(name)


@cache
def array_type(datatype: str) -> np.dtype[Any]:
    """The numpy type of arrays of a datatype: floats for `BF16`, which numpy lacks, objects for `BYTES` and others."""
    import numpy as np

    return np.dtype(np.float32) if datatype == "BF16" else numpy_type(datatype) or np.dtype(np.object_)


def datatype_of(dtype: np.dtype[Any]) -> str | None:
    """The datatype of fixed size that arrays of a numpy type have; `None` for any other type."""
    return next((row.name for row in _core.datatypes() if row.size is not None and row.numpy_name == dtype.name), None)


def pack_texts(texts: Iterable[bytes]) -> bytes:
    """The elements of `BYTES`, each behind its length."""
    return b"".join(len(text).to_bytes(_LENGTH_BYTES, "little") + text for text in texts)


def unpack_texts(packed: bytes) -> list[bytes]:
    """The elements of `BYTES` that are packed one behind the other.

    Raises:
        ValueError: If the last one is cut off.
    """
    elements: list[bytes] = []
    position = 0
    while position < len(packed):
        begin = position + _LENGTH_BYTES
        end = begin + int.from_bytes(packed[position:begin], "little")
        if end > len(packed):
            raise ValueError(f"element {len(elements)} ends at byte {end}, but there are {len(packed)} bytes")
        elements.append(packed[begin:end])
        position = end
    return elements
