"""Texts in OpenVINO's tensors, which has them as strings of C++ and not as numpy's arrays of objects."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["read_texts", "text_tensor"]

openvino: Any = import_module("openvino")  # by name, since type checkers need not have it


def text_tensor(array: np.ndarray) -> Any:
    """A tensor with the texts of an array of `bytes` objects."""
    tensor = openvino.Tensor(openvino.Type.string, openvino.Shape(array.shape))
    if array.size:
        tensor.bytes_data = array.reshape(-1).tolist()
    return tensor


def read_texts(tensor: Any) -> np.ndarray:
    """The texts of a tensor that has axes, as `bytes` objects.

    Zeros at the end of a text are lost, as numpy loses them. Each is read alone, 5 µs each: read together, each would
    take the room of the longest.
    """
    shape = tuple(tensor.shape)
    found = np.empty(shape, object)
    for at in np.ndindex(shape):
        one = openvino.Tensor(tensor, list(at), [index + 1 for index in at]).bytes_data
        # OpenVINO gives an array without memory for an empty text, and numpy reads a byte beside it.
        found[at] = bytes(one.reshape(-1)[0]) if one.strides[-1] else b""
    return found
