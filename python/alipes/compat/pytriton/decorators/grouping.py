"""Decorators that call a function for each group of requests, or of rows, that belong together."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import wrapt

from alipes.compat.pytriton.decorators.batching import batch
from alipes.compat.pytriton.decorators.outputs import (
    SPECIAL_KEYS,
    Array,
    InferenceResults,
    get_inference_request_batch_size,
)
from alipes.compat.pytriton.exceptions import PyTritonRuntimeError
from alipes.datatypes import pack_texts

__all__ = ["group_by_keys", "group_by_values"]


@wrapt.decorator
def group_by_keys(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    """Calls the function once for all requests that have the same inputs; answers keep the order of the requests.

    It stands above `batch`, which refuses requests whose inputs differ.
    """
    requests, *others = args
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, request in enumerate(requests):
        groups.setdefault(tuple(sorted(request.keys())), []).append(number)
    answers: dict[int, Any] = {}
    for _, numbers in sorted(groups.items()):
        returned = wrapped([requests[number] for number in numbers], *others, **kwargs)
        answers |= zip(numbers, returned, strict=False)
    return [answer for _, answer in sorted(answers.items(), key=operator.itemgetter(0))]


def group_by_values(*keys: str, pad_fn: Callable[[InferenceResults], InferenceResults] | None = None) -> Any:
    """Calls the function once for all rows that have the same values in the inputs of these names.

    It stands beneath `batch`. Outputs are put back in the order of the rows.

    Args:
        keys: Names of inputs.
        pad_fn: Makes the outputs of the groups equal in shape, such as `ConstantPadder()`.

    Raises:
        PyTritonRuntimeError: When called, if `batch` stands beneath it.
    """

    @wrapt.decorator
    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if any(getattr(function, "_self_wrapper", None) == batch for function in _stack(wrapped)):
            raise PyTritonRuntimeError("The @group_by_values decorator must be used after the @batch decorator.")
        inputs = {name: value for name, value in kwargs.items() if name not in SPECIAL_KEYS}
        others = {name: value for name, value in kwargs.items() if name in SPECIAL_KEYS}
        rows = get_inference_request_batch_size(inputs)
        places, results = [], []
        for indices in _groups(inputs, keys, rows):
            places.append(indices)
            results.append(wrapped(*args, **{name: value[indices, ...] for name, value in inputs.items()}, **others))
        return _merged(places, pad_fn(tuple(results)) if pad_fn is not None else results, rows)

    return wrapper


def _stack(function: Any) -> Iterator[Any]:
    """A function and all that its decorators decorate."""
    while function is not None:
        yield function
        function = getattr(function, "__wrapped__", None)


def _groups(inputs: Mapping[str, Array], keys: tuple[str, ...], rows: int) -> list[tuple[int, ...]]:
    """The rows of each group, in the order of the values."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in range(rows):
        groups.setdefault(tuple(_comparable(inputs[key][row]) for key in keys), []).append(row)
    return [tuple(groups[values]) for values in sorted(groups)]


def _comparable(value: Any) -> Any:
    """A row's value as something that can be compared and hashed."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind not in "OS":
        return value.tobytes()
    # Each element behind its length, as it is sent: so no two rows look alike that are not.
    elements = [item if isinstance(item, bytes) else str(item).encode() for item in value.ravel().tolist()]
    return pack_texts(elements)


def _merged(places: list[tuple[int, ...]], results: Any, rows: int) -> dict[str, Array]:
    """The outputs of all groups, each row where it came from."""
    merged = {name: np.zeros((rows, *data.shape[1:]), data.dtype) for name, data in results[0].items()}
    for indices, result in zip(places, results, strict=True):
        for name, data in result.items():
            merged[name][indices, ...] = data
    return merged
