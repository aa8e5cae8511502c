"""Documents that came together are one call of the function; one that is at fault fails alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import alipes
import numpy as np
from alipes.worker.apps.documents import encode
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import plan_of
from alipes.worker.apps.rows import Rows, row_reader
from numpy.typing import NDArray


def answers(function: Callable[..., Any], *bodies: bytes) -> list[Any]:
    """What each document is answered with; None where it is left to others."""
    reader = row_reader(plan_of(function, Options(name="m", max_batch_size=8)))
    assert reader is not None
    documents: Any = list(bodies)  # a reader takes them like requests
    responses = Rows(function, reader, encode).answers(documents)
    return [None if one is None else json.loads(one.output_tensors()[0].as_numpy()[0]) for one in responses]


def test_documents_are_one_call_and_the_rest_is_left() -> None:
    seen = []

    def double(x: NDArray[np.float32]) -> NDArray[np.float32]:
        seen.append(x.tolist())
        return x * 2

    assert answers(double, b'{"x": [1, 2]}', b'{"y": 1}', b'{"x": [3, 4.5]}') == [[2.0, 4.0], None, [6.0, 9.0]]
    assert seen == [[[1.0, 2.0], [3.0, 4.5]]]


def test_a_result_with_parts_is_split() -> None:
    def both(x: NDArray[np.float64], text: list[str]) -> dict[str, Any]:
        return {"sum": x.sum(axis=1), "text": [one.upper() for one in text]}

    bodies = [b'{"x": [1, 2], "text": "a"}', b'{"text": "b", "x": [3, 4]}']
    assert answers(both, *bodies) == [{"sum": 3.0, "text": "A"}, {"sum": 7.0, "text": "B"}]


def test_what_is_at_fault_fails_alone() -> None:
    def root(x: NDArray[np.float64]) -> NDArray[np.float64]:
        wrong = bool((x < 0).any())
        np.sqrt(np.abs(x), out=x)  # in place, so that what is called again has to be read again
        if wrong:
            raise alipes.InvalidArgument("no number below zero has a root")
        return x

    refused = {"error": "no number below zero has a root"}
    assert answers(root, b'{"x": [4]}', b'{"x": [-1]}', b'{"x": [9]}') == [[2.0], refused, [3.0]]
    assert answers(root, b'{"x": [-1]}') == [refused]


def test_rows_of_another_shape_are_another_call() -> None:
    def size(x: NDArray[np.int32]) -> list[int]:
        return [x[0].size] * len(x)

    assert answers(size, b'{"x": [1]}', b'{"x": [1, 2]}', b'{"x": [3]}') == [1, 2, 1]
