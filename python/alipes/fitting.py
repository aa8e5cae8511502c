"""Arrays converted to another type where each value stays the number that it is."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

__all__ = ["as_type"]

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def as_type(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array as another type. Floats are rounded to what a narrower float can hold; nothing else changes.

    Raises:
        OverflowError: If a number lies beyond the type, or has a fraction that a whole number has not.
    """
    if array.dtype == dtype or array.dtype.kind not in "biuf" or dtype.kind not in "biuf":
        return array.astype(dtype, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(dtype)
    if array.size:
        wrong = _beyond_float(array, converted) if dtype.kind == "f" else _beyond_whole(array, dtype)
        if wrong.any():
            first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            place = "".join(f"[{index}]" for index in first)
            raise OverflowError(f"{array[first]}{f' at {place}' if place else ''} does not fit {dtype}")
    return converted


def _beyond_float(array: Array, converted: Array) -> Array:
    return np.asarray(np.isfinite(array) & ~np.isfinite(converted))


def _beyond_whole(array: Array, dtype: np.dtype[Any]) -> Array:
    """What is no whole number of the type: compared with its bounds, since a cast would wrap."""
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if array.dtype.kind == "b":
        return np.zeros(array.shape, np.bool_)
    if array.dtype.kind in "iu":
        held = np.iinfo(array.dtype)
        # Bounds within the array's own type: numpy compares no signed number with an unsigned one exactly.
        wrong = np.zeros(array.shape, np.bool_)
        if least > held.min:
            wrong |= array < array.dtype.type(least)
        if most < held.max:
            wrong |= array > array.dtype.type(most)
        return wrong
    # The bound above is no double where it has more bits; one more than it always is.
    return np.asarray(~((array >= float(least)) & (array < float(most + 1)) & (np.trunc(array) == array)))
