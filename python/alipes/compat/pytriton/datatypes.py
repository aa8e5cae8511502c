"""Types of numpy and datatypes of configurations, as PyTriton pairs them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from alipes._core import datatypes
from alipes.compat.pytriton.exceptions import PyTritonBadParameterError, PyTritonModelConfigError

__all__ = ["array_datatype", "config_datatype", "type_of"]

_PREFIX: Final = "TYPE_"
_TEXT_TYPES: Final = (np.object_, object, bytes, np.bytes_)
_TEXT_KINDS: Final = "OSU"


def config_datatype(dtype: Any) -> str:
    """The datatype of a configuration for a type of numpy: `TYPE_FP32` for `numpy.float32`.

    Raises:
        PyTritonBadParameterError: If the protocol has no such datatype.
    """
    if dtype in _TEXT_TYPES:
        return f"{_PREFIX}STRING"
    found = None if np.dtype(dtype).kind in _TEXT_KINDS else array_datatype(np.dtype(dtype))
    if found is None:
        raise PyTritonBadParameterError(
            f"The type {np.dtype(dtype)} cannot be sent: use bool, an integer, a float, or bytes for strings."
        )
    return f"{_PREFIX}{found}"


def array_datatype(dtype: np.dtype[Any]) -> str | None:
    """The protocol's datatype of an array, `FP32` for `float32`; None where the protocol has none."""
    if dtype.name == "bfloat16":
        return "BF16"
    return "BYTES" if dtype.kind in _TEXT_KINDS else _by_type().get(dtype.newbyteorder("="))


def type_of(datatype: str | None) -> Any:
    """The type of numpy for a datatype of a configuration.

    Raises:
        PyTritonModelConfigError: If there is none.
    """
    if not datatype:
        raise PyTritonModelConfigError("Data type not defined.")
    parts = datatype.split("_")
    if len(parts) != 2:
        raise PyTritonModelConfigError(f"Invalid data type `{datatype}`. The expected name is TYPE_{{type}}.")
    name = parts[1]
    if name == "STRING":
        return np.bytes_
    if name == "BYTES":
        return np.object_
    if name == "BF16":
        return np.float32  # what our clients give for it: numpy has no such type
    for dtype, known in _by_type().items():
        if known == name:
            return dtype if dtype == np.bool_ else dtype.type
    raise PyTritonModelConfigError(f"Unsupported data type `{name}`.")


@cache
def _by_type() -> dict[np.dtype[Any], str]:
    """The datatypes of fixed size that numpy has."""
    return {np.dtype(row.numpy_name): row.name for row in datatypes() if row.size is not None and row.numpy_name}
