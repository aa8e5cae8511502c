"""A call of a function: its arguments as inputs, and its values as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from alipes.client.function import Function
from alipes.client.plain.request import Array
from alipes.client.plain.responses import ResponseSource
from alipes.client.signature import Signature, TensorSpec
from alipes.errors import InvalidArgument

__all__ = ["CalledFunction", "CalledValues"]


class CalledFunction:
    """A function, or another model, with the arguments of one call.

    Attributes:
        inputs: What is sent.
        is_stream: Whether the call has any number of values.
    """

    def __init__(self, function: Function | None, inputs: Mapping[str, Any]) -> None:
        """Takes inputs that fit.

        Args:
            function: None for a model that describes itself as none: its outputs are arrays.
            inputs: What is sent.
        """
        self.inputs = inputs
        self.is_stream = function is not None and function.is_stream
        self._function = function

    @classmethod
    def of(cls, signature: Signature, values: Sequence[Any], arguments: Mapping[str, Any]) -> Self:
        """Reads the arguments of a call, the first ones by position.

        Raises:
            InvalidArgument: If they do not fit the signature.
        """
        arguments = _named(signature, values, arguments) if values else arguments
        if signature.function is not None:
            datatypes = {name: spec.datatype for name, spec in signature.inputs.items()}
            return cls(signature.function, signature.function.inputs(arguments, datatypes))
        inputs = signature.named(arguments)
        return cls(None, {name: _fitted(signature, signature.inputs[name], value) for name, value in inputs.items()})

    def value(self, outputs: Mapping[str, Array]) -> Any:
        """What the function has returned; of a model, the only output, or all by name."""
        if self._function is not None:
            return self._function.value(outputs)
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs


def _named(signature: Signature, values: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name, as Python reads a call.

    Raises:
        InvalidArgument: If there are too many, or one is there twice.
    """
    names = list(signature.inputs if signature.function is None else signature.function.arguments)
    first = values[0]
    if len(values) == 1 and isinstance(first, Mapping) and first and first.keys() <= set(names):
        raise InvalidArgument(
            f"arguments by name are passed as keywords: call('{signature.model}', **{{'{min(first)}': ...}})"
        )
    if len(values) > len(names):
        raise InvalidArgument(
            f"'{signature.model}' takes {', '.join(names) or 'nothing'}: {len(values)} values are more"
        )
    named = dict(zip(names, values, strict=False))
    if twice := named.keys() & arguments.keys():
        raise InvalidArgument(f"'{signature.model}' has two values for the argument '{min(twice)}'")
    return {**named, **arguments}


class CalledValues:
    """The values of a call that has any number of them."""

    def __init__(self, responses: ResponseSource, called: CalledFunction) -> None:
        """Takes the responses to the call."""
        self._responses = responses
        self._called = called

    def __next__(self) -> Any:
        """The next value, after a wait for it."""
        return self._called.value(next(self._responses))

    async def __anext__(self) -> Any:
        """The next value, which is awaited."""
        return self._called.value(await self._responses.__anext__())

    def close(self) -> None:
        """Cancels the call, where it is not answered to the end."""
        self._responses.close()


def _fitted(signature: Signature, spec: TensorSpec, value: Any) -> Any:
    """A value with the axis of the batch, where it lacks that alone."""
    if isinstance(value, list | tuple | int | float | str | np.ndarray):
        array = spec.tensor_of(signature.model, value)
        if array.ndim == len(spec.shape) - 1 and spec.shape[:1] == (-1,):
            return array[np.newaxis]
        return array
    return value
