"""Makes tensors of what a caller passes to a model without streamed inputs, as the plain clients do."""

from __future__ import annotations

from typing import Any

import numpy as np

from alipes.client.inference.reader import Reading
from alipes.client.signature import Signature, TensorSpec
from alipes.errors import InvalidArgument
from alipes.fitting import as_type

__all__ = ["SignatureReader"]


class SignatureReader:
    """Reads what callers pass for one model: arrays of any batch that the model takes, or what becomes one."""

    def __init__(self, signature: Signature, *, cast: bool) -> None:
        """Takes the model's inputs; `cast` is whether arrays of another type are converted."""
        self._signature = signature
        self._cast = cast

    def read(self, x: Any, last: bool) -> Reading:
        """The tensors of one request.

        Raises:
            InvalidArgument: If something is missing or does not fit; a `ValueError`.
        """
        values = self._signature.named(x)
        if self._cast:
            values = {name: _cast(self._signature.inputs[name], value) for name, value in values.items()}
        return Reading(tuple(self._signature.tensors(values)), None)


def _cast(spec: TensorSpec, value: Any) -> Any:
    """An array of another type as the model takes it, where that loses no kind of number."""
    if (
        isinstance(value, np.ndarray)
        and value.dtype != spec.dtype
        and np.can_cast(value.dtype, spec.dtype, "same_kind")
    ):
        try:
            return as_type(value, spec.dtype)
        except OverflowError as error:
            raise InvalidArgument(f'"{spec.name}": {error}') from error
    return value
