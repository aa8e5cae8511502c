"""The decorator that gives inputs that a request left out their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import wrapt

from alipes.compat.pytriton.context import get_model_config
from alipes.compat.pytriton.decorators.outputs import Array, get_inference_request_batch_size
from alipes.compat.pytriton.exceptions import PyTritonBadParameterError
from alipes.compat.pytriton.triton_model_config import TensorSpec, TritonModelConfig

__all__ = ["fill_optionals"]


def fill_optionals(**defaults: Array) -> Any:
    """Gives inputs that a request left out these defaults, one for each row.

    It stands above the decorators that group or join requests, so that they find the same inputs in all of them.

    Args:
        defaults: Arrays without a batch dimension by the name of their input.

    Raises:
        PyTritonBadParameterError: When called, if a default is no array, or does not fit the declared input.
    """

    @wrapt.decorator
    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        config = get_model_config(wrapped, instance)
        _check(defaults, config)
        (requests,) = args
        for request in requests:
            rows = get_inference_request_batch_size(request) if config.batching else None
            for name, value in defaults.items():
                if name not in request:
                    request[name] = value if rows is None else np.tile(value, (rows, *(1,) * value.ndim))
        return wrapped(*args, **kwargs)

    return wrapper


def _check(defaults: Mapping[str, Any], config: TritonModelConfig) -> None:
    """Refuse defaults that do not fit the declaration."""
    inputs = {spec.name: spec for spec in config.inputs or ()}
    if unknown := sorted(set(defaults) - set(inputs)):
        raise PyTritonBadParameterError(f"Could not found {', '.join(unknown)} inputs")
    if others := [f"{name}={value}" for name, value in defaults.items() if not isinstance(value, np.ndarray)]:
        raise PyTritonBadParameterError(f"Could not use {', '.join(others)} defaults as they are not NumPy arrays")
    wrong = [
        f"{name}: dtype={value.dtype} expected_dtype={inputs[name].dtype}"
        for name, value in defaults.items()
        if value.dtype != inputs[name].dtype
    ]
    if wrong:
        raise PyTritonBadParameterError(
            f"Could not use {', '.join(wrong)} defaults as they have different than input signature dtypes"
        )
    wrong = [
        f"{name}: shape={value.shape} expected_shape={inputs[name].shape}"
        for name, value in defaults.items()
        if not _fits(value.shape, inputs[name])
    ]
    if wrong:
        raise PyTritonBadParameterError(
            f"Could not use {', '.join(wrong)} defaults as they have different than input signature shapes"
        )


def _fits(shape: tuple[int, ...], spec: TensorSpec) -> bool:
    return len(shape) == len(spec.shape) and all(
        wanted in (-1, size) for size, wanted in zip(shape, spec.shape, strict=True)
    )
