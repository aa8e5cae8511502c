"""Makes batches of different shapes equal in shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from alipes.compat.pytriton.decorators.outputs import Array, InferenceResults
from alipes.compat.pytriton.exceptions import PyTritonRuntimeError

__all__ = ["ConstantPadder"]


class ConstantPadder:
    """Fills up with one value behind the last element of each dimension, except the batch dimension."""

    def __init__(self, pad_value: Any = 0) -> None:
        """Takes the value; strings are filled up with empty ones whatever it is."""
        self.pad_value = pad_value

    def __call__(self, batches_list: InferenceResults) -> InferenceResults:
        """The batches, equal in shape for each name.

        Raises:
            PyTritonRuntimeError: If the arrays of a name have different types.
        """
        names = dict.fromkeys(name for batch in batches_list for name in batch)
        padded: list[dict[str, Array]] = [{} for _ in batches_list]
        for name in names:
            arrays = [batch[name] for batch in batches_list if name in batch]
            shape = np.max([array.shape[1:] for array in arrays], axis=0)
            dtype = _common_type(arrays)
            for batch, result in zip(batches_list, padded, strict=True):
                if name in batch:
                    result[name] = self._filled(batch[name], shape, dtype)
        return padded

    def _filled(self, array: Array, shape: Any, dtype: np.dtype[Any]) -> Array:
        behind = [(0, 0), *((0, int(wide) - size) for size, wide in zip(array.shape[1:], shape, strict=True))]
        value = b"" if dtype.kind in "SUO" else self.pad_value
        return np.pad(array, behind, mode="constant", constant_values=value).astype(dtype)


def _common_type(arrays: Sequence[Array]) -> np.dtype[Any]:
    """The type of all arrays; of strings, the longest."""
    types = [array.dtype for array in arrays]
    first = types[0]
    text = first.kind in "SU"
    if any(dtype.kind != first.kind if text else dtype != first for dtype in types):
        raise PyTritonRuntimeError("All input arrays for given input name must have the same dtype.")
    return max(types, key=lambda dtype: dtype.itemsize) if text else first
