from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from alipes.row_proof import RowProof, prove_rows
from alipes.signature import Port, Signature

Function = Callable[[Any], Any]


def one(function: Function, kind: str = "FP32", shape: tuple[int, ...] = (-1, 3), **more: Any) -> RowProof:
    """What is found out about a function of one tensor."""
    signature = Signature((Port("X", kind, shape),), (Port("Y", "FP32", (-1,)),))
    return prove_rows(lambda arrays: {"Y": function(arrays["X"])}, signature, **more)


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2,
        lambda x: x @ np.arange(6, dtype="f4").reshape(3, 2),
        lambda x: softmax(x, 1),
        lambda x: x - x.mean(axis=1, keepdims=True),
        lambda x: np.sort(x, axis=1),
        lambda x: x.argmax(axis=1),
        lambda x: np.zeros((len(x), 2), "f4"),
        np.log,  # no number for half of what is drawn
        lambda x: np.array([[f"{v:.3f}".encode() for v in row] for row in x], object),
        lambda x: np.array([f"{row[0]:.3f}".encode() for row in x], object),  # a text for each row, without an axis
    ],
)
def test_a_function_of_each_row_is_proved(function: Function) -> None:
    with np.errstate(invalid="ignore"):
        assert one(function) == RowProof("proved")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x - x.mean(axis=0), "output 'Y' of a row depends on the rows beside it"),
        (lambda x: softmax(x, 0), "depends on the rows beside it"),
        (lambda x: (x - x.mean(0)) / (x.std(0) + 1e-5), "depends on the rows beside it"),
        (lambda x: x @ x.T, "output 'Y' of a row depends on the rows beside it"),
        (lambda x: x.cumsum(axis=0), "depends on the rows beside it"),
        (lambda x: np.flip(x, 0), "depends on the rows beside it"),
        (lambda x: np.sort(x, axis=0), "depends on the rows beside it"),
        (lambda x: np.repeat(x[:1], len(x), axis=0), "depends on the rows beside it"),
        (lambda x: x + 0.01 * x[-1:], "depends on the rows beside it"),
        (lambda x: x / len(x), "is another one beside other rows than alone"),
        (lambda x: x + np.arange(len(x), dtype="f4")[:, None], "is another one beside other rows than alone"),
        (lambda x: x.T, "output 'Y' has shape [3, 2] for 2 rows"),
        (lambda x: x.sum(axis=0), "output 'Y' has shape [3] for 2 rows"),
        (lambda x: x.sum(), "output 'Y' has shape [] for 2 rows"),
        (lambda x: x[x[:, 0] > 0], "for 2 rows"),
        (lambda x: np.concatenate([x, x]), "output 'Y' has shape [4, 3] for 2 rows"),
    ],
)
def test_a_function_of_several_rows_is_refuted(function: Function, reason: str) -> None:
    found = one(function)
    assert found.outcome == "refuted"
    assert reason in found.reason


def test_what_shows_for_large_numbers_alone_is_found() -> None:
    assert one(lambda x: np.where(np.abs(x).max() > 20, x - x.max(0), x)).outcome == "refuted"


def test_randomness_is_named() -> None:
    random = np.random.default_rng(1)
    found = one(lambda x: x * (random.random(x.shape) > 0.5))
    assert found.outcome == "refuted"
    assert found.reason in (
        "output 'Y' is another one each time that it is computed for the same row",
        "output 'Y' of a row depends on the rows beside it",
    )


def test_a_model_that_counts_its_calls_is_refuted() -> None:
    calls = itertools.count()
    assert one(lambda x: x + next(calls)).outcome == "refuted"


def test_other_kernels_for_other_numbers_of_rows_are_no_dependence() -> None:
    assert one(lambda x: x * np.float32(1 + 1e-3 * (len(x) > 2))).holds


@pytest.mark.parametrize("vocabulary", [2, 8, 100])
def test_integers_are_places_in_a_small_vocabulary(vocabulary: int) -> None:
    table = np.random.default_rng(0).random((vocabulary, 4), "f4")
    assert one(lambda x: table[x], "INT64").holds


def test_lengths_that_may_not_be_nought_are_tried() -> None:
    def divided(x: Any) -> Any:
        if (x == 0).any():
            raise ValueError("a length of 0")
        return np.float32(1) / x

    assert one(divided, "INT32").holds


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("BYTES", lambda x: np.vectorize(len)(x).astype("f4")),
        ("BOOL", lambda x: ~x),
        ("UINT8", lambda x: x.astype("f4") / 255),
        ("FP16", lambda x: x * np.float16(0.5)),
        ("FP64", lambda x: x / 3),
        ("BF16", lambda x: x * 2),
        ("INT8", lambda x: -x),
    ],
)
def test_every_datatype_is_drawn(kind: str, function: Function) -> None:
    assert one(function, kind).holds


@pytest.mark.parametrize("least", [7, 32, 100])
def test_open_sizes_are_tried_until_one_works(least: int) -> None:
    def wide(x: Any) -> Any:
        if x.shape[1] < least or x.shape[2] < least:
            raise ValueError("the picture is too small")
        return x.mean(axis=(1, 2))

    assert one(wide, shape=(-1, -1, -1)).holds


def test_a_size_that_two_inputs_share_has_one_value() -> None:
    ports = tuple(
        Port(name, "INT64", shape, symbols)
        for name, shape, symbols in (
            ("ids", (-1, -1), ("batch", "words")),
            ("mask", (-1, -1), ("batch", "words")),
            ("table", (-1, -1, 4), ("batch", "entries", "")),
        )
    )

    def run(arrays: Any) -> Any:
        assert arrays["ids"].shape == arrays["mask"].shape
        assert arrays["table"].shape[1] != arrays["ids"].shape[1]
        return {"Y": (arrays["ids"] * arrays["mask"]).sum(1) + arrays["table"].sum((1, 2))}

    assert prove_rows(run, Signature(ports, (Port("Y", "INT64", (-1,), ("batch",)),))).holds


def test_an_axis_that_an_output_takes_from_elsewhere_is_refuted() -> None:
    signature = Signature(
        (Port("X", "FP32", (-1, -1, 3), ("T", "N", "")),), (Port("Y", "FP32", (-1, -1, 3), ("N", "T", "")),)
    )
    found = prove_rows(lambda arrays: pytest.fail("there is nothing to run"), signature)
    assert (found.outcome, found.reason) == ("refuted", "axis 0 of 'Y' is 'N', which is no axis 0 of an input")


def test_a_square_is_refuted_by_its_name() -> None:
    signature = Signature((Port("X", "FP32", (-1, -1), ("N", "N")),), (Port("Y", "FP32", (-1,), ("N",)),))
    found = prove_rows(lambda arrays: pytest.fail("there is nothing to run"), signature)
    assert (found.outcome, found.reason) == ("refuted", "axis 0 of 'X' is 'N', as another axis of it is")


def test_what_cannot_be_run_is_untried_with_its_error() -> None:
    def broken(x: Any) -> Any:
        raise RuntimeError("no kernel\nfor it")

    assert one(broken) == RowProof("untried", "it cannot be run on random rows: no kernel for it")


def test_what_gives_no_numbers_is_untried() -> None:
    assert one(lambda x: x * np.nan) == RowProof("untried", "its answers to random rows are no numbers")


def test_what_takes_too_long_is_untried() -> None:
    found = one(lambda x: x, longest_s=-1)
    assert found.outcome == "untried"
    assert found.reason.startswith("it takes longer than -1 s to find out")


def test_what_nobody_waits_for_is_not_tried_to_the_end() -> None:
    calls = itertools.count()

    def check() -> None:
        if next(calls) == 2:
            raise KeyError("cancelled")

    with pytest.raises(KeyError):
        one(lambda x: x, check=check)


def test_inputs_without_end_are_not_made() -> None:
    found = one(lambda x: x, shape=(-1, 1 << 40))
    assert found == RowProof("untried", "input 'X' is too large to try")
