"""Random values of any datatype."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

__all__ = ["random_values"]

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


def random_values(
    random: np.random.Generator,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    text_length: int,
    letters: str = _LETTERS,
) -> np.ndarray[Any, Any]:
    """Floats from 0 to 1, integers up to 100, either truth, or texts as bytes.

    Args:
        random: Where they come from.
        dtype: Their type; objects are texts.
        shape: Their shape.
        text_length: Characters of a text.
        letters: What texts are made of.
    """
    if dtype.kind == "f":
        return random.random(shape, np.float32).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        return random.integers(0, min(np.iinfo(dtype).max, 100), shape, dtype, endpoint=True)
    drawn = random.choice(list(letters), (math.prod(shape), text_length))
    words = np.empty(len(drawn), np.object_)
    words[:] = ["".join(row).encode() for row in drawn]
    return words.reshape(shape)
