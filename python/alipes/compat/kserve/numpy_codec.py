"""Datatypes of the V2 protocol as types of numpy, as the KServe SDK maps them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["from_np_dtype", "to_np_dtype"]

_TYPES: Final[dict[str, Any]] = {
    "BOOL": bool,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": np.object_,
}
_NAMES: Final = {np.dtype(kind): name for name, kind in _TYPES.items()}
_TEXTS: Final = "OSUM"
"""Kinds of numpy that travel as BYTES: objects, bytes, texts, and moments."""


def to_np_dtype(dtype: str) -> Any:
    """The type of numpy for a datatype; None for an unknown one."""
    return _TYPES.get(dtype)


def from_np_dtype(np_dtype: Any) -> str | None:
    """The datatype for a type of numpy; None where there is none."""
    kind = np.dtype(np_dtype)
    name = _NAMES.get(kind) or _NAMES.get(kind.newbyteorder("="))
    return name or ("BYTES" if kind.kind in _TEXTS else None)
