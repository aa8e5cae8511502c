"""Triton's datatypes by number and by name, and numpy's beside them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["TRITON_STRING_TO_NUMPY", "numpy_to_triton_type", "triton_string_to_numpy", "triton_to_numpy_type"]

# BF16 has no numpy type: asking for it is a KeyError, as in Triton.
TRITON_STRING_TO_NUMPY: Final[dict[str, type]] = {
    "TYPE_BOOL": bool,
    "TYPE_UINT8": np.uint8,
    "TYPE_UINT16": np.uint16,
    "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64,
    "TYPE_INT8": np.int8,
    "TYPE_INT16": np.int16,
    "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64,
    "TYPE_FP16": np.float16,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}

# The number of a datatype is its place in the protocol's enumeration, which begins with the invalid one.
_BY_NUMBER: Final[dict[int, type]] = {
    number: np.bool_ if given is bool else given
    for number, given in enumerate(TRITON_STRING_TO_NUMPY.values(), start=1)
}
_NUMBERS: Final[dict[np.dtype[Any], int]] = {np.dtype(given): number for number, given in _BY_NUMBER.items()}
_STRING: Final = _NUMBERS[np.dtype(np.object_)]


def triton_string_to_numpy(triton_type_string: str) -> type:
    """The numpy type of a name such as ``TYPE_FP32``; a KeyError where there is none."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def triton_to_numpy_type(data_type: int) -> type | None:
    """The numpy type of a datatype's number; ``None`` where there is none."""
    return _BY_NUMBER.get(data_type)


def numpy_to_triton_type(data_type: Any) -> int | None:
    """The number of a numpy type or dtype; ``None`` where there is none."""
    try:
        dtype = np.dtype(data_type)
    except TypeError:
        return None
    return _STRING if dtype.kind == "S" else _NUMBERS.get(dtype)
