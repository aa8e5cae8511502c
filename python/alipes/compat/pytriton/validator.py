"""Checks of what an inference function returned, before it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from alipes.compat.pytriton.triton_model_config import TensorSpec, TritonModelConfig

__all__ = ["TritonResultsValidator"]

_KINDS: Final = "biufOSU"
_TEXT_KINDS: Final = "OSU"
_TEXT_TYPES: Final = (bytes, object, np.bytes_, np.object_)


class TritonResultsValidator:
    """Checks responses against the requests and, if strict, against the model's declaration."""

    def __init__(self, model_config: TritonModelConfig, strict: bool) -> None:
        """Takes the model's configuration, and whether types and shapes are compared with it."""
        self._model = model_config.model_name
        self._batch_dims = 1 if model_config.batching else 0
        self._declared = {spec.name: spec for spec in model_config.outputs or ()}
        self._strict = strict

    def validate_responses(self, requests: Sequence[Any], responses: Any) -> None:
        """Checks the responses to requests.

        Raises:
            ValueError: If there is not one dictionary of arrays for each request, or one does not fit.
        """
        model = self._model
        if not isinstance(responses, list):
            raise ValueError(
                f"Outputs returned by `{model}` model callable must be list of response dicts with numpy arrays. "
                f"Got outputs={responses} instead."
            )
        if len(responses) != len(requests):
            raise ValueError(
                f"Number of outputs returned by `{model}` inference callable ({len(responses)}) does not match number "
                f"of requests ({len(requests)}) received from Triton."
            )
        for response in responses:
            if not isinstance(response, dict):
                raise ValueError(
                    f"Outputs returned by `{model}` model callable must be list of response dicts with numpy arrays. "
                    f"Got response={response} instead."
                )
            for name, value in response.items():
                self._check_array(name, value)
                if self._strict:
                    self._check_declared(name, value)

    def _check_array(self, name: Any, value: Any) -> None:
        model = self._model
        if not isinstance(name, str):
            raise ValueError(f"Not all keys returned by `{model}` model callable are string")
        if not isinstance(value, np.ndarray):
            raise ValueError(f"Not all values returned by `{model}` model callable are numpy arrays")
        if value.dtype.kind not in _KINDS:
            raise ValueError(
                "Only bool, numeric, string, unicode and object arrays are supported by Triton "
                f"(dtype.kind: {_KINDS}). Returned `{name}` for model `{model}` has `{value.dtype.kind}` dtype.kind."
            )
        if value.dtype.kind != "O" or not value.size:
            return
        first = value.item(0)
        if isinstance(first, str):
            raise ValueError(
                f"Use string/byte-string instead of object for passing string in NumPy array from model `{model}`."
            )
        if not isinstance(first, bytes):
            raise ValueError(
                f"Only bytes as objects dtype are supported by PyTriton. Returned `{name}` from `{model}` "
                f"has `{type(first)}` type."
            )

    def _check_declared(self, name: str, value: Any) -> None:
        model, spec = self._model, self._declared.get(name)
        if spec is None:
            raise ValueError(f"Returned output `{name}` is not defined in model config for model `{model}`.")
        if not _is_of_type(value, spec):
            raise ValueError(
                f"Returned output `{name}` for model `{model}` has invalid type. "
                f"Returned: {value.dtype} ({value.dtype.kind}). Expected: {spec.dtype}."
            )
        shape = value.shape[self._batch_dims :]
        if len(shape) != len(spec.shape):
            raise ValueError(
                f"Returned output `{name}` for model `{model}` has invalid shapes. "
                f"Returned: {shape}. Expected: {spec.shape}."
            )
        if any(wanted not in (-1, size) for size, wanted in zip(shape, spec.shape, strict=True)):
            raise ValueError(
                f"Returned output `{name}` for model `{model}` has invalid shapes at one or more positions. "
                f"Returned: {shape}. Expected: {spec.shape}."
            )


def _is_of_type(value: Any, spec: TensorSpec) -> bool:
    if value.dtype.kind in _TEXT_KINDS:
        return spec.dtype in _TEXT_TYPES
    return bool(np.issubdtype(value.dtype, spec.dtype))
