"""Requests that came together are one call; one that is at fault fails alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from alipes.worker.apps.asks import Ask
from alipes.worker.apps.joined import Joined
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import plan_of
from numpy.typing import NDArray


class Asked(Ask):
    """A request with its arguments as they are."""

    def __init__(self, rows: int | None, **arguments: Any) -> None:
        self.rows, self.arguments = rows, arguments

    def read(self) -> None:
        """Nothing is left to read."""

    def response(self, value: Any) -> Any:
        """Never asked for here."""
        raise NotImplementedError


def joined(function: Any) -> Joined:
    return Joined(function, plan_of(function, Options(name="m", max_batch_size=8)))


def test_calls_and_tensors_are_one_call() -> None:
    seen = []

    def double(x: NDArray[np.float32]) -> NDArray[np.float32]:
        seen.append(x.shape)
        return x * 2

    asks = [
        Asked(None, x=np.array([1, 2], np.float32)),
        Asked(2, x=np.array([[3, 4], [5, 6]], np.float32)),
        Asked(None, x=np.array([7, 8], np.float32)),
    ]
    answers = joined(double).answers(asks)
    assert seen == [(4, 2)]
    assert [answer.tolist() for answer in answers] == [[2, 4], [[6, 8], [10, 12]], [14, 16]]


def test_lists_are_joined_and_results_with_parts_split() -> None:
    def lengths(texts: list[str]) -> dict[str, list[int]]:
        return {"length": [len(one) for one in texts], "number": list(range(len(texts)))}

    answers = joined(lengths).answers([Asked(None, texts="ab"), Asked(2, texts=["c", ""])])
    assert answers == [{"length": 2, "number": 0}, {"length": [1, 0], "number": [1, 2]}]


def test_rows_of_another_shape_are_another_call() -> None:
    seen = []

    def same(x: NDArray[np.float32]) -> NDArray[np.float32]:
        seen.append(x.shape)
        return x

    answers = joined(same).answers([Asked(None, x=np.zeros(n, np.float32)) for n in (2, 3, 2)])
    assert sorted(seen) == [(1, 3), (2, 2)]
    assert [answer.shape for answer in answers] == [(2,), (3,), (2,)]


def test_a_request_at_fault_fails_alone() -> None:
    def roots(x: NDArray[np.float64]) -> NDArray[np.float64]:
        if (x < 0).any():
            raise ValueError("negative")
        return np.sqrt(x)

    answers = joined(roots).answers([Asked(None, x=np.array([v], np.float64)) for v in (4, -1, 9)])
    assert [str(answer) if isinstance(answer, Exception) else answer.tolist() for answer in answers] == [
        [2.0],
        "negative",
        [3.0],
    ]


def test_a_result_of_another_number_of_rows_is_an_error() -> None:
    def total(x: NDArray[np.float64]) -> Any:
        return x.sum()

    def first(x: NDArray[np.float64]) -> Any:
        return (x, x[:1])

    answers = joined(total).answers([Asked(2, x=np.zeros((2, 1)))])
    assert "got 2 rows and returned a float64" in str(answers[0])
    answers = joined(first).answers([Asked(2, x=np.zeros((2, 1)))])
    assert "got 2 rows and returned 1 row as value 1" in str(answers[0])
