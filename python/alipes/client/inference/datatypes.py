"""The protocol's datatypes, and the numpy types whose elements they are."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

__all__ = ["NUMPY_NAMES", "numpy_type"]

NUMPY_NAMES: Final = {
    "BOOL": "bool",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
}
"""Datatype to numpy's name. `BYTES` is any array of texts or byte strings; `BF16`, which numpy lacks, two bytes."""


@cache
def numpy_type(datatype: str) -> np.dtype[Any] | None:
    """The one numpy type of a datatype; `None` where there are several or none."""
    import numpy as np

    return np.dtype(NUMPY_NAMES[datatype]) if datatype in NUMPY_NAMES else None
