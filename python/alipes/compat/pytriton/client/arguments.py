"""The arguments of a call: which inputs there are, and what stands beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from alipes.client.signature import Signature, TensorSpec
from alipes.compat.pytriton.client.exceptions import PyTritonClientValueError
from alipes.compat.pytriton.datatypes import array_datatype
from alipes.compat.pytriton.triton_model_config import TritonModelConfig

__all__ = ["Array", "Inputs", "Parameters", "check_call", "name_inputs", "own_signature", "with_batch_dimension"]

Array: TypeAlias = npt.NDArray[Any]
Inputs: TypeAlias = tuple[Array, ...] | dict[str, Array]
Parameters: TypeAlias = dict[str, str | int | bool]


def check_call(inputs: tuple[Any, ...], named_inputs: Mapping[str, Any], *beside: Any) -> None:
    """Refuse a call without inputs, or with both kinds of them, and parameters or headers that cannot be sent.

    Raises:
        PyTritonClientValueError: If it is such a call.
    """
    if not inputs and not named_inputs:
        raise PyTritonClientValueError("Provide input data")
    if inputs and named_inputs:
        raise PyTritonClientValueError("Use either positional either keyword method arguments convention")
    for values in beside:
        _check_values(values)


def _check_values(values: Any) -> None:
    if values is None:
        return
    if not isinstance(values, dict):
        raise PyTritonClientValueError("Parameters and headers must be a dictionary")
    for key, value in values.items():
        if not isinstance(key, str):
            raise PyTritonClientValueError("Parameter/header key must be a string")
        if not isinstance(value, (str, int, bool)):
            raise PyTritonClientValueError("Parameter/header value must be a string, integer or boolean")


def with_batch_dimension(inputs: tuple[Any, ...], named_inputs: Mapping[str, Any]) -> Inputs:
    """Inputs of one row, in front of which a dimension of size 1 is put."""
    if inputs:
        return tuple(_array(f"number {number}", data)[np.newaxis, ...] for number, data in enumerate(inputs, 1))
    return {name: _array(name, data)[np.newaxis, ...] for name, data in named_inputs.items()}


def name_inputs(inputs: Any, config: TritonModelConfig) -> dict[str, Array]:
    """Inputs by name, checked: those without one have the names of the declaration, in its order.

    Raises:
        PyTritonClientValueError: If one is no array, or of a type that cannot be sent.
        RuntimeError: If strings are not encoded.
    """
    if isinstance(inputs, tuple):
        inputs = {spec.name: data for spec, data in zip(config.inputs or (), inputs, strict=False)}
    for name, data in inputs.items():
        _check_strings(name, _array(name, data))
    return dict(inputs)


def own_signature(model: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> Signature:
    """The signature that arrays fit: they are sent as they are, and the server says what it thinks of them."""
    specs = {name: TensorSpec(name, array_datatype(data.dtype) or "", data.shape) for name, data in inputs.items()}
    return Signature(model, specs, {name: TensorSpec(name, "", ()) for name in outputs})


def _array(name: str, data: Any) -> Array:
    if not isinstance(data, np.ndarray):
        raise PyTritonClientValueError(f"Input {name} is not a numpy array. Got {type(data)} instead.")
    return data


def _check_strings(name: str, data: Array) -> None:
    if data.dtype == object and data.size and not isinstance(first := data.reshape(-1)[0], bytes):
        raise RuntimeError(
            f"Numpy array for {name!r} input with dtype=object should contain encoded strings (e.g. into utf-8). "
            f"Element type: {type(first)}"
        )
    if data.dtype.type == np.str_:
        raise RuntimeError(
            "Unicode inputs are not supported. "
            f"Encode numpy array for {name!r} input (ex. with np.char.encode(array, 'utf-8'))."
        )
    if array_datatype(data.dtype) is None:
        raise PyTritonClientValueError(f"Input {name} has the type {data.dtype}, which cannot be sent.")
