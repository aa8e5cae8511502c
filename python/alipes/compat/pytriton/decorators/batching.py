"""Decorators that turn requests into the arguments of a function: one request, all of a batch, single values."""

from __future__ import annotations

import inspect
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import wrapt

from alipes.compat.pytriton.constants import TRITON_CONTEXT_FIELD_NAME
from alipes.compat.pytriton.context import get_model_config, get_triton_context
from alipes.compat.pytriton.decorators.outputs import (
    SPECIAL_KEYS,
    Array,
    convert_output,
    get_inference_request_batch_size,
)
from alipes.compat.pytriton.exceptions import (
    PyTritonBadParameterError,
    PyTritonRuntimeError,
    PyTritonValidationError,
)

__all__ = ["batch", "first_value", "pad_batch", "sample", "triton_context"]


@wrapt.decorator
def sample(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    """Calls the function with the inputs of the only request as keywords: for models without a batch dimension."""
    requests, *others = args
    return [convert_output(wrapped(*others, **kwargs, **dict(requests[0].items())), wrapped, instance)]


@wrapt.decorator
def batch(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    """Calls the function once for all requests: each input, joined along the batch dimension, is a keyword.

    Outputs are split again by the rows of each request. The function may be a generator.

    Raises:
        PyTritonValidationError: If requests have different inputs.
        ValueError: If an output has another number of rows than the requests together.
    """
    requests, *others = args
    names = requests[0].keys()
    if any(request.keys() != names for request in requests[1:]):
        raise PyTritonValidationError("Cannot batch requests with different set of inputs keys")
    joined = {name: np.concatenate([request[name] for request in requests]) for name in names}
    rows = [get_inference_request_batch_size(request) for request in requests]
    outputs = wrapped(*others, **{**kwargs, **joined})

    def split(result: Any) -> list[dict[str, Array]]:
        return _split(convert_output(result, wrapped, instance), rows)

    if inspect.isgenerator(outputs):
        return _each(outputs, split)
    return split(outputs)


def _each(results: Iterator[Any], split: Any) -> Iterator[Any]:
    for result in results:
        yield split(result)


def _split(outputs: Mapping[str, Array], rows: Sequence[int]) -> list[dict[str, Array]]:
    """The outputs of each request, as views."""
    whole = sum(rows)
    wrong = {name: output.shape for name, output in outputs.items() if output.shape[0] != whole}
    if wrong:
        listed = ", ".join(f"{name}: {shape}" for name, shape in wrong.items())
        raise ValueError(
            f"Received output tensors with different batch sizes: {listed}. Expected batch size: {whole}. "
        )
    ends = np.cumsum(rows)
    return [
        {name: output[end - count : end, ...] for name, output in outputs.items()}
        for end, count in zip(ends, rows, strict=True)
    ]


@wrapt.decorator
def triton_context(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    """Calls the function with its context as the keyword `triton_context`."""
    kwargs[TRITON_CONTEXT_FIELD_NAME] = get_triton_context(wrapped, instance)
    return wrapped(*args, **kwargs)


@wrapt.decorator
def pad_batch(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    """Repeats the last row of each input until the batch has the next preferred size, or the largest one.

    It stands beneath `batch`. The outputs are those of the longer batch, so they are to be cut by the function's user.
    """
    inputs = {name: value for name, value in kwargs.items() if name not in SPECIAL_KEYS}
    config = get_model_config(wrapped, instance)
    preferred = config.batcher.preferred_batch_size if config.batcher is not None else None
    sizes = [*sorted(preferred or ()), config.max_batch_size]
    rows = next(iter(inputs.values())).shape[0]
    wanted = sizes[bisect_left(sizes, rows)]
    for name, value in inputs.items():
        times = np.ones(value.shape[0], np.int64)
        times[-1] += wanted - value.shape[0]
        kwargs[name] = np.repeat(value, times, axis=0)
    return wrapped(*args, **kwargs)


def first_value(*keys: str, squeeze_single_values: bool = True, strict: bool = True) -> Any:
    """Makes the inputs of these names single values: the first row, which all rows are expected to equal.

    It stands beneath `batch`, or above a function that takes the list of requests.

    Args:
        keys: Names of inputs; one that a request lacks is passed over.
        squeeze_single_values: Whether an array of one element becomes that element.
        strict: Whether rows that differ are an error.

    Raises:
        PyTritonRuntimeError: When called: if rows differ, or the model has no batch dimension.
        PyTritonBadParameterError: If a name is not that of an input.
    """
    reserved = [key for key in keys if key in SPECIAL_KEYS]
    if reserved:
        raise PyTritonBadParameterError(
            f"The keys {', '.join(reserved)} are not allowed as keys for @first_value wrapper. "
            f"The set of not allowed keys are {', '.join(SPECIAL_KEYS)}"
        )

    def replace(request: Any) -> Any:
        for name in keys:
            if name in request:
                request[name] = _first(name, request[name], squeeze_single_values, strict)
        return request

    @wrapt.decorator
    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if not get_model_config(wrapped, instance).batching:
            raise PyTritonRuntimeError("The @first_value decorator can only be used with models that support batching.")
        if set(kwargs) - set(SPECIAL_KEYS):
            return wrapped(*args, **replace(kwargs))
        requests, *others = args
        return wrapped([replace(request) for request in requests], *others, **kwargs)

    return wrapper


def _first(name: str, values: Array, squeeze: bool, strict: bool) -> Any:
    # Along no axis for objects, which numpy cannot compare row by row.
    if strict and len(np.unique(values, axis=None if values.dtype == object else 0)) > 1:
        raise PyTritonRuntimeError(
            f"The values on the {name!r} input are not equal. To proceed, either disable strict mode in @first_value "
            "wrapper or ensure that the values always are consistent. "
            f"The current values of {name!r} are {values!r}."
        )
    first = values[0]
    single = squeeze and not np.isscalar(first) and all(size == 1 for size in first.shape)
    return np.squeeze(first)[()] if single else first
