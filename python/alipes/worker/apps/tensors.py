"""Tensors of a function: inputs into arguments, values into outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from alipes._core import Tensor
from alipes.datatypes import array_type
from alipes.fitting import as_type
from alipes.worker.apps.exchange import Response
from alipes.worker.apps.misfit import Misfit
from alipes.worker.apps.plan import Plan
from alipes.worker.apps.tensor_types import TensorType

__all__ = ["argument_of", "columns_of", "tensors_of"]


def argument_of(array: np.ndarray, tensor: TensorType) -> Any:
    """What a function gets for an input.

    Args:
        array: The input; where the function takes batches, with the batch as its first axis.
        tensor: How the argument looks as a tensor.

    Raises:
        Misfit: If a text is no UTF-8.
    """
    if tensor.form == "array":
        return array.reshape(array.shape[:1]) if tensor.is_row else array
    values = array.reshape(-1).tolist()
    if tensor.datatype == "BYTES" and tensor.python is str:
        try:
            values = [value.decode() if isinstance(value, bytes) else value for value in values]
        except UnicodeDecodeError as error:
            raise Misfit("expected a text in UTF-8, got bytes of another kind") from error
    if tensor.form == "list":
        return values
    return values[0] if tensor.python in (bool, int, float, str, bytes) else tensor.python(values[0])


def columns_of(value: Any, names: Sequence[str]) -> list[Any]:
    """The parts of a result in the order of the outputs.

    Raises:
        TypeError: If it has other parts.
    """
    if isinstance(value, Response):
        value = value.value
    if isinstance(value, Mapping):
        if set(value) != set(names):
            got, wanted = ", ".join(map(repr, value)), ", ".join(map(repr, names))
            raise TypeError(f"the function returned {got} where its annotation has {wanted}")
        return [value[name] for name in names]
    if dataclasses.is_dataclass(value):
        return [getattr(value, name) for name in names]
    if len(names) == 1 and not hasattr(value, "_fields"):
        return [value[0] if isinstance(value, tuple) and len(value) == 1 else value]
    if not isinstance(value, tuple) or len(value) != len(names):
        raise TypeError(f"the function returned a {type(value).__name__} where its annotation has {len(names)} values")
    return list(value)


def tensors_of(value: Any, plan: Plan, wanted: frozenset[str] | set[str] = frozenset()) -> list[Tensor]:
    """A result as outputs.

    Args:
        value: What the function returned, or the rows of it that one request gets.
        plan: What the function gives.
        wanted: Names of the outputs that the request asks for; all where there are none.

    Raises:
        TypeError: If the result is not what the annotation says.
    """
    assert plan.outputs is not None, "the control plane declares outputs only where the annotations have some"
    names = list(plan.outputs)
    found = []
    for name, column in zip(names, columns_of(value, names), strict=True):
        if not wanted or name in wanted:
            found.append(Tensor(name, _array(name, column, plan.outputs[name])))
    return found


def fitted(value: Any, datatype: str) -> np.ndarray:
    """A value as an array of a datatype.

    Raises:
        OverflowError: If a number lies beyond the datatype, or would lose its fraction.
        TypeError: If it is no such value.
        ValueError: Likewise.
    """
    dtype = array_type(datatype)
    return np.asarray(value, dtype) if dtype.kind == "O" else as_type(np.asarray(value), dtype)


def _array(name: str, column: Any, tensor: TensorType) -> np.ndarray:
    try:
        array = fitted(column, tensor.datatype)
    except (OverflowError, TypeError, ValueError) as error:
        raise TypeError(f"output '{name}' is annotated as {tensor.datatype}: {error}") from error
    if tensor.form == "scalar":
        return array.reshape(1)
    return array.reshape(-1, 1) if tensor.is_row and array.ndim == 1 else array
