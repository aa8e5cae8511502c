"""Whether a function treats each row of a call by itself, so that an export may join requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from alipes.repository.export.rows import why_not_joined


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x * 2 + 1, None),
        (lambda x: np.linalg.norm(x, axis=1), None),
        (lambda x: x @ np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3), None),
        (lambda x: np.sqrt(x) + 1, None),
        (lambda x: x - x.mean(), "what it returns for a row depends on the other rows of the call (output 'y')"),
        (lambda x: np.cumsum(x, axis=0), "what it returns for a row depends on the other rows of the call"),
        (lambda x: np.sort(x, axis=0), "what it returns for a row depends on the other rows of the call"),
        (lambda x: x[:1], "it returns another number of rows than it gets"),
        (lambda x: x.sum(), "it returns another number of rows than it gets"),
        (lambda x: x[[0, 1]] + x[[1, 2]], "it could not be called on single rows"),
    ],
)
@pytest.mark.parametrize("alike", [False, True])
def test_a_function_whose_rows_depend_on_each_other_is_found(
    function: Callable[..., Any], reason: str | None, alike: bool
) -> None:
    sample = np.ones((3, 4), np.float32) if alike else np.random.default_rng(0).random((3, 4), np.float32)
    found = why_not_joined(lambda arrays: [np.asarray(function(**arrays))], {"x": sample}, ["y"], None)
    assert (found is None) == (reason is None)
    assert (found or "").startswith(reason or "")


@pytest.mark.parametrize(
    "sample", [np.zeros((3, 4), np.int64), np.full((3, 1), b"text", object), np.zeros((3, 2), np.uint8)], ids=str
)
def test_rows_are_distinguished_in_every_datatype(sample: np.ndarray) -> None:
    def length(x: Any) -> Any:
        return np.array([[len(str(value)) for value in row] for row in x], np.int64)

    assert why_not_joined(lambda arrays: [length(arrays["x"])], {"x": sample}, ["y"], None) is None
    whole = why_not_joined(
        lambda arrays: [length(arrays["x"]) * len(set(arrays["x"].flat))], {"x": sample}, ["y"], None
    )
    assert whole is not None
