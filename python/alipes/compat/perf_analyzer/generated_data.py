"""Random inputs, and zeros."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from alipes.compat.perf_analyzer.dataset import Array, Dataset, Step
from alipes.compat.perf_analyzer.failures import Failed
from alipes.compat.perf_analyzer.model import Model, Port
from alipes.compat.perf_analyzer.settings import SentData
from alipes.loadtest.random_values import random_values

__all__ = ["generated"]

_VARIETY: Final = 16
"""Requests that differ."""
_MAX_BYTES: Final = 64 << 20
"""Most memory for them: above it they are fewer."""
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_SEED: Final = 0


def generated(model: Model, data: SentData) -> Dataset:
    """Steps with values of each required input's datatype.

    Raises:
        Failed: If a shape stays open.
    """
    ports = [port for port in model.inputs.values() if not port.optional]
    shapes = {port.name: filled_shape(port, data) for port in ports}
    if data.source == "zero":
        return Dataset([[{port.name: _zeros(port, shapes[port.name], data) for port in ports}]])
    random = np.random.default_rng(_SEED)
    size = sum(math.prod(shapes[port.name]) * port.spec.dtype.itemsize for port in ports)
    count = max(data.batch, min(_VARIETY * data.batch, _MAX_BYTES // max(size, 1)))
    steps: list[Step] = [
        {port.name: _random(random, port, shapes[port.name], data) for port in ports} for _ in range(count)
    ]
    return Dataset([steps])


def filled_shape(port: Port, data: SentData) -> tuple[int, ...]:
    """The sizes of an input, those that the model leaves open from `--shape`.

    Raises:
        Failed: If there are none.
    """
    if min(port.shape, default=1) > 0:
        return port.shape
    shape = data.shapes.get(port.name)
    if shape is None:
        raise Failed(
            f"error: Failed to init manager inputs: input {port.name} contains dynamic shape, provide shapes to send "
            "along with the request\n"
        )
    return shape


def _zeros(port: Port, shape: tuple[int, ...], data: SentData) -> Array:
    if port.spec.dtype.kind == "O":
        return np.full(shape, (data.text or "").encode(), np.object_)
    return np.zeros(shape, port.spec.dtype)


def _random(random: np.random.Generator, port: Port, shape: tuple[int, ...], data: SentData) -> Array:
    dtype = port.spec.dtype
    if dtype.kind == "O" and data.text is not None:
        return np.full(shape, data.text.encode(), np.object_)
    return random_values(random, dtype, shape, data.text_length, _LETTERS)
