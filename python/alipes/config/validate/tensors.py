"""The inputs and outputs that a configuration declares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod
from typing import Final

from alipes.config.datatypes import INVALID
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["check_tensors"]

_ANY: Final = -1
"""A size that requests may choose."""

_SIZES: Final = "dimension must be integer >= 1, or -1 to indicate a variable-size dimension"
_RESHAPED_SIZES: Final = "reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension"
_IMAGE_RANK: Final = 3
_TENSORRT: Final = {
    "is_shape_tensor": "shape tensors are only supported for TensorRT platform",
    "is_non_linear_format_io": "Non-linear IO format is only supported for the TensorRT platform",
}


def check_tensors(config: ModelConfig) -> None:
    """Every input and output has a name, a datatype and sensible sizes."""
    for tensor in config.input:
        _check_tensor(config, tensor, "input")
        if tensor.format in (tensor.FORMAT_NHWC, tensor.FORMAT_NCHW) and len(tensor.dims) != _IMAGE_RANK:
            raise ConfigError(f"model input NHWC/NCHW require 3 dims for {config.name}", key="input.format")
        _check_tensorrt(config, tensor, "input")
    for tensor in config.output:
        _check_tensor(config, tensor, "output")
        _check_tensorrt(config, tensor, "output")


def _check_tensor(config: ModelConfig, tensor: ModelConfig, side: str) -> None:
    wrong = _missing(tensor) or _wrong_sizes(config, tensor)
    if wrong is not None:
        field, text = wrong
        called = f" '{tensor.name}'" if tensor.name else ""
        raise ConfigError(f"model {side}{called} {text} for {config.name}", key=f"{side}.{field}")


def _check_tensorrt(config: ModelConfig, tensor: ModelConfig, side: str) -> None:
    """What only TensorRT has, which is not offered."""
    for field, text in _TENSORRT.items():
        if getattr(tensor, field):
            raise ConfigError(f"{text} for {config.name}", key=f"{side}.{field}")


def _missing(tensor: ModelConfig) -> tuple[str, str] | None:
    present = {"name": bool(tensor.name), "data_type": tensor.data_type != INVALID, "dims": bool(tensor.dims)}
    return next(((field, f"must specify '{field}'") for field, is_present in present.items() if not is_present), None)


def _wrong_sizes(config: ModelConfig, tensor: ModelConfig) -> tuple[str, str] | None:
    """The field and what is wrong with it; None where nothing is."""
    shape = list(tensor.reshape.shape) if tensor.HasField("reshape") else None
    if shape == [] and config.max_batch_size == 0:
        return "reshape", "cannot have empty reshape for non-batching model as scalar tensors are not supported"
    if any(size < 1 and size != _ANY for size in tensor.dims):
        return "dims", _SIZES
    if shape is None:
        return None
    if any(size < 1 and size != _ANY for size in shape):
        return "reshape", _RESHAPED_SIZES
    return _wrong_reshape(list(tensor.dims), shape)


def _wrong_reshape(dims: list[int], shape: list[int]) -> tuple[str, str] | None:
    """Elements must be as many before as after, between every two variable sizes."""
    differs = "reshape", "has different size for dims and reshape"
    if _ANY not in dims or _ANY not in shape:
        same_kind = (_ANY in dims) == (_ANY in shape)
        return None if same_kind and prod(dims) == prod(shape) else differs
    if dims.count(_ANY) != shape.count(_ANY):
        return "reshape", "has different number of variable-size dimensions for dims and reshape"
    return None if _runs(dims) == _runs(shape) else differs


def _runs(sizes: Sequence[int]) -> list[int]:
    """The products of the fixed sizes around and between the variable ones."""
    products = [1]
    for is_any, run in groupby(sizes, key=lambda size: size == _ANY):
        if is_any:
            products += [1 for _ in run]
        else:
            products[-1] *= prod(run)
    return products
