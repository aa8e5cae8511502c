"""What annotations say of a function: its arguments, its tensors, its kind."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, NamedTuple, TypedDict

import alipes
import numpy as np
import pytest
from alipes.errors import ConfigError
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import Plan, plan_of
from numpy.typing import NDArray

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def plan(function: Any, **options: Any) -> Plan:
    return plan_of(function, Options(name="m", **options))


def inputs(found: Plan) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(one.name, one.tensor.datatype, one.tensor.dims) for one in found.arguments if one.tensor is not None]


def outputs(found: Plan) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(name, one.datatype, one.dims) for name, one in (found.outputs or {}).items()]


def test_numbers_texts_lists_and_arrays_are_tensors() -> None:
    def function(  # noqa: PLR0913, PLR0917 - one of each kind
        a: float, b: int, c: bool, d: str, e: bytes, f: list[float], g: NDArray[np.int8], h: Matrix, i: np.float32
    ) -> Annotated[np.ndarray, "float16", (None, 4)]: ...

    found = plan(function)
    assert found.has_tensors
    assert inputs(found) == [
        ("a", "FP64", (1,)),
        ("b", "INT64", (1,)),
        ("c", "BOOL", (1,)),
        ("d", "BYTES", (1,)),
        ("e", "BYTES", (1,)),
        ("f", "FP64", (-1,)),
        ("g", "INT8", (-1,)),
        ("h", "FP32", (-1, -1)),
        ("i", "FP32", (1,)),
    ]
    assert outputs(found) == [("output_0", "FP16", (-1, 4))]


@dataclasses.dataclass
class Found:
    label: str
    score: float


class Pair(TypedDict):
    left: int
    right: list[str]


class Both(NamedTuple):
    first: float
    second: NDArray[np.float32]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Found, [("label", "BYTES", (1,)), ("score", "FP64", (1,))]),
        (Pair, [("left", "INT64", (1,)), ("right", "BYTES", (-1,))]),
        (Both, [("first", "FP64", (1,)), ("second", "FP32", (-1,))]),
        (tuple[int, str], [("output_0", "INT64", (1,)), ("output_1", "BYTES", (1,))]),
        (dict[str, float], []),
        (None, []),
        (NDArray[np.complex64], []),
    ],
)
def test_a_result_with_fields_has_an_output_for_each(result: Any, expected: list[Any]) -> None:
    def function(x: float) -> None: ...

    function.__annotations__["return"] = result
    assert outputs(plan(function)) == expected


def test_a_function_of_anything_else_has_no_tensors() -> None:
    def function(x: dict[str, int]) -> float:
        raise NotImplementedError

    def nothing() -> float:
        raise NotImplementedError

    assert not plan(function).has_tensors
    assert not plan(nothing).has_tensors


def test_a_batch_is_the_first_axis_or_a_list() -> None:
    def function(
        x: Annotated[np.ndarray, np.float32, (None, 4)], y: list[str], z: Annotated[np.ndarray, np.int64, (None,)]
    ) -> tuple[NDArray[np.float32], list[int]]: ...

    found = plan(function, max_batch_size=8)
    assert inputs(found) == [("x", "FP32", (4,)), ("y", "BYTES", (1,)), ("z", "INT64", (1,))]
    assert outputs(found) == [("output_0", "FP32", (-1,)), ("output_1", "INT64", (1,))]
    assert [one.stacks for one in found.arguments] == [True, False, True]


def test_generators_coroutines_and_requests_are_recognised() -> None:
    def stream(n: int) -> Iterator[int]:
        yield n

    async def coroutine(n: int) -> int:
        return n

    async def async_stream(n: int, request: alipes.Request) -> AsyncIterator[str]:
        yield str(n)

    kinds = [(one.is_stream, one.is_async) for one in map(plan, (stream, coroutine, async_stream))]
    assert kinds == [(True, False), (False, True), (True, True)]
    assert outputs(plan(stream)) == [("output_0", "INT64", (1,))]
    assert plan(async_stream).request == "request"


def test_a_class_answers_with_predict_or_its_call() -> None:
    class Predicts:
        def __call__(self, x: str) -> str:
            raise NotImplementedError

        def predict(self, x: int) -> int:
            raise NotImplementedError

    class Calls:
        def __call__(self, x: str) -> str:
            raise NotImplementedError

    class Neither:
        pass

    assert inputs(plan(Predicts)) == [("x", "INT64", (1,))]
    assert inputs(plan(Calls)) == [("x", "BYTES", (1,))]
    with pytest.raises(ConfigError, match="class Neither needs a method predict or __call__"):
        plan(Neither)


def star(*x: int) -> int:
    raise NotImplementedError


def stars(**x: int) -> int:
    raise NotImplementedError


def positional(x: int, /) -> int:
    raise NotImplementedError


def scalar(x: float) -> list[float]:
    raise NotImplementedError


async def coroutine(x: list[float]) -> list[float]:
    raise NotImplementedError


def nothing() -> list[int]:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (star, {}, r"argument '\*x' cannot be given by name"),
        (stars, {}, r"argument '\*\*x' cannot be given by name"),
        (positional, {}, "argument 'x' cannot be given by name"),
        (scalar, {"max_batch_size": 4}, "annotate it as an array whose first axis is the batch"),
        (coroutine, {"max_batch_size": 4}, "cannot be async"),
        (nothing, {"max_batch_size": 4}, "at least one argument"),
    ],
)
def test_what_cannot_be_served_is_refused(function: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan(function, **options)
