"""Warm-up: requests that are made up, with which a bound function is called before it is served."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from alipes.compat.pytriton.exceptions import PyTritonBadParameterError
from alipes.compat.pytriton.settings import ModelWarmup, WarmupInput

__all__ = ["generate_warmup_data", "generate_warmup_requests"]

Array = npt.NDArray[Any]

_INTEGER_ENDS: Final = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
_OTHER_INTEGERS: Final = (0, 100)
_LETTERS: Final = string.ascii_lowercase + string.digits
_LENGTHS: Final = (8, 33)


def generate_warmup_data(warmup_input: WarmupInput, batch_size: int) -> Array:
    """An input of a warm-up request, with a batch dimension of that size.

    Raises:
        PyTritonBadParameterError: If no source is named, or a file's array does not fit.
    """
    shape = (batch_size, *warmup_input.shape)
    dtype = np.dtype(warmup_input.dtype)
    if warmup_input.input_data_file:
        return _from_file(warmup_input, shape).astype(dtype)
    if warmup_input.zero_data:
        return np.zeros(shape, dtype)
    if warmup_input.random_data:
        return _random(dtype, shape)
    raise PyTritonBadParameterError(
        "One of 'zero_data', 'random_data', or 'input_data_file' must be provided for warmup input."
    )


def generate_warmup_requests(
    model_warmup: Sequence[ModelWarmup], input_specs: Any = (), outputs_specs: Any = ()
) -> list[dict[str, Array]]:
    """The inputs of all warm-up requests, by name; the same errors. The declaration is not looked at."""
    return [
        {name: generate_warmup_data(spec, warmup.batch_size) for name, spec in warmup.inputs.items()}
        for warmup in model_warmup
        for _ in range(warmup.count)
    ]


def _from_file(warmup_input: WarmupInput, shape: tuple[int, ...]) -> Array:
    """The array of a file, of one row or of a batch, repeated or cut to the batch's size."""
    data: Array = np.load(str(warmup_input.input_data_file))
    if data.shape == shape:
        return data
    if data.ndim == len(warmup_input.shape):
        return np.repeat(data[np.newaxis, ...], shape[0], axis=0)
    if data.shape[1:] == shape[1:]:
        return np.resize(data, shape)
    raise PyTritonBadParameterError(f"Input data file shape {data.shape} doesn't match expected shape {shape}")


def _random(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    random = np.random.default_rng()
    if dtype == np.bool_:
        return random.random(shape) < 0.5
    if np.issubdtype(dtype, np.integer):
        low, high = _INTEGER_ENDS.get(dtype.name, _OTHER_INTEGERS)
        return random.integers(low, high, shape, dtype)
    if np.issubdtype(dtype, np.floating):
        return random.random(shape).astype(dtype)
    if dtype.kind in "SO":
        lengths = random.integers(*_LENGTHS, size=int(np.prod(shape)))
        words = ["".join(random.choice(list(_LETTERS), length)).encode() for length in lengths]
        return np.array(words, dtype).reshape(shape)
    return np.zeros(shape, dtype)
