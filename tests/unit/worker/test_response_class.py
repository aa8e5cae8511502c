"""`InferenceResponse` and `TritonError`."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from alipes._core import InferenceResponse, Tensor, TritonError, TritonModelException

CODES = {
    "UNKNOWN": 0,
    "INTERNAL": 1,
    "NOT_FOUND": 2,
    "INVALID_ARG": 3,
    "UNAVAILABLE": 4,
    "UNSUPPORTED": 5,
    "ALREADY_EXISTS": 6,
    "CANCELLED": 7,
}


@pytest.fixture
def tensor() -> Tensor:
    return Tensor("T", np.zeros(1))


@pytest.mark.parametrize("name", CODES)
def test_error_codes_have_triton_s_numbers(name: str) -> None:
    assert int(getattr(TritonError, name)) == CODES[name]
    assert TritonError("text", getattr(TritonError, name)).code() == CODES[name]


def test_an_error_without_a_code_is_internal() -> None:
    error = TritonError("text")
    assert (error.message(), error.code()) == ("text", TritonError.INTERNAL)


def test_the_text_of_an_error_may_be_bytes() -> None:
    assert TritonError("ü".encode()).message() == "ü"


@pytest.mark.parametrize(
    "arguments", [(5,), (b"\xff",), (None,), ("text", 8), ("text", -1), ("text", None), ("text", "NOT_FOUND")]
)
def test_an_impossible_error_is_a_type_error(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match=r"__init__\(\): incompatible constructor arguments\."):
        TritonError(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("sequence", [list, tuple, deque])
def test_a_response_has_its_outputs(tensor: Tensor, sequence: Callable[[list[Tensor]], Sequence[Tensor]]) -> None:
    response = InferenceResponse(sequence([tensor]))
    assert response.output_tensors() == [tensor]
    assert not response.has_error()
    assert response.error() is None


def test_a_response_can_be_empty() -> None:
    assert InferenceResponse().output_tensors() == []
    assert InferenceResponse([], None, None).output_tensors() == []


def test_a_response_keeps_outputs_and_error(tensor: Tensor) -> None:
    error = TritonError("both")
    response = InferenceResponse([tensor], error)
    assert response.has_error()
    assert response.error() is error


@pytest.mark.parametrize(
    "arguments",
    [{"error": "only text"}, *({"output_tensors": wrong} for wrong in ("text", [1], 3, None))],
    ids=["error", "text", "numbers", "number", "none"],
)
def test_other_arguments_are_a_type_error(arguments: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=r"__init__\(\): incompatible constructor arguments\."):
        InferenceResponse(**arguments)  # type: ignore[arg-type]


def test_an_output_that_is_none_is_refused() -> None:
    with pytest.raises(TritonModelException, match="should not be empty"):
        InferenceResponse([None])  # type: ignore[list-item]


def test_parameters_are_text_to_the_model() -> None:
    parameters = {"text": "t", "number": 5, "negative": -3, "truth": True}
    assert json.loads(InferenceResponse(parameters=parameters).parameters()) == parameters
    assert InferenceResponse().parameters() == "{}"


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, b"x", 1j, 0.5], ids=lambda value: type(value).__name__)
def test_a_parameter_of_another_type_is_refused(value: object) -> None:
    text = f"Expect parameters values to have type bool/int/str, found type {type(value)}"
    with pytest.raises(TritonModelException, match=f"^{text}"):
        InferenceResponse(parameters={"n": 1, "k": value})  # type: ignore[dict-item]


def test_a_parameter_beyond_64_bits_is_refused() -> None:
    with pytest.raises(TritonModelException, match="64 bits"):
        InferenceResponse(parameters={"k": 2**63})


def test_parameters_are_a_dictionary_with_text_keys() -> None:
    with pytest.raises(TritonModelException, match=r"^Expect dict, got <class 'list'>"):
        InferenceResponse(parameters=[("k", 1)])  # type: ignore[arg-type]
    with pytest.raises(
        TritonModelException, match=r"^Expect parameters keys to have type str, found type <class 'int'>"
    ):
        InferenceResponse(parameters={1: 1})  # type: ignore[dict-item]
