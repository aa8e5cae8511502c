"""Triton's datatypes by number and by name, and numpy's beside them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from alipes import _core

__all__ = ["TRITON_STRING_TO_NUMPY", "numpy_to_triton_type", "triton_string_to_numpy", "triton_to_numpy_type"]

_ROWS: Final = _core.datatypes()

# BF16 has no numpy type: asking for it is a KeyError, as in Triton.
TRITON_STRING_TO_NUMPY: Final[dict[str, type]] = {
    row.config_name: bool if row.name == "BOOL" else np.dtype(row.numpy_name).type
    for row in _ROWS
    if row.numpy_name is not None
}

# The number of a datatype is its position in the table, counted from 1.
_BY_NUMBER: Final[dict[int, type]] = {
    number: np.dtype(row.numpy_name).type for number, row in enumerate(_ROWS, start=1) if row.numpy_name is not None
}
_NUMBERS: Final[dict[np.dtype[Any], int]] = {np.dtype(kind): number for number, kind in _BY_NUMBER.items()}
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
