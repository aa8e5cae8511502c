"""`InferenceRequest` as a model makes it, in a process without a link."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from alipes._core import InferenceRequest, InferenceTrace, PreferredMemory, Tensor, TritonModelException

OUTSIDE = r"^BLS is only supported during the 'execute' function\.$"


def make(**changes: Any) -> InferenceRequest:
    arguments = {"inputs": [Tensor("X", np.zeros(1))], "requested_output_names": ["Y"], "model_name": "m"}
    return InferenceRequest(**(arguments | changes))


def test_a_request_has_triton_s_defaults() -> None:
    request = make()
    assert (request.request_id(), request.correlation_id(), request.flags(), request.timeout()) == ("", 0, 0, 0)
    assert request.parameters() == "{}"
    assert request.requested_output_names() == {"Y"}
    assert request.trace().get_context() is None
    assert not request.is_cancelled()


def test_a_request_has_the_arguments_of_its_constructor() -> None:
    trace, tensor = InferenceTrace(), Tensor("X", np.zeros(1))
    request = make(
        request_id="r",
        correlation_id="c",
        inputs=(tensor,),
        model_version=2,
        flags=3,
        timeout=55,
        preferred_memory=PreferredMemory(object(), 1),
        trace=trace,
        parameters={"a": 1, "b": "two", "c": True},
    )
    assert (request.request_id(), request.correlation_id(), request.flags(), request.timeout()) == ("r", "c", 3, 55)
    assert json.loads(request.parameters()) == {"a": 1, "b": "two", "c": True}
    assert request.inputs() == [tensor]
    assert request.trace() is trace


def test_texts_may_be_bytes_of_utf_8() -> None:
    request = make(request_id=b"r", requested_output_names=["Y", "ü".encode()], model_name=b"m")
    assert (request.request_id(), request.requested_output_names()) == ("r", {"Y", "ü"})


@pytest.mark.parametrize(
    "changes", [{"model_name": b"\xff"}, {"model_name": 1}, {"requested_output_names": b"Y"}, {"request_id": None}]
)
def test_what_is_no_text_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=r"^__init__\(\): incompatible constructor arguments\."):
        make(**changes)


def test_flags_can_be_set() -> None:
    request = make()
    request.set_flags(2)
    assert request.flags() == 2


@pytest.mark.parametrize("missing", ["inputs", "requested_output_names", "model_name"])
def test_arguments_without_default_are_required(missing: str) -> None:
    with pytest.raises(TypeError, match=r"__init__\(\): incompatible constructor arguments\."):
        make(**{missing: None})


@pytest.mark.parametrize(
    "name",
    ["request_id", "correlation_id", "inputs", "model_version", "flags", "timeout", "preferred_memory", "trace"],
)
def test_none_does_not_stand_for_a_default(name: str) -> None:
    with pytest.raises(TypeError, match=r"^__init__\(\): incompatible constructor arguments\."):
        make(**{name: None})


def test_parameters_may_be_none() -> None:
    assert make(parameters=None).parameters() == "{}"


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_correlation_id_is_an_unsigned_number(number: int) -> None:
    with pytest.raises(RuntimeError, match=r"^Unable to cast Python instance of type <class 'int'>"):
        make(correlation_id=number)


@pytest.mark.parametrize("missing", ["inputs", "requested_output_names", "model_name"])
def test_arguments_without_default_may_not_be_left_out(missing: str) -> None:
    arguments = {"inputs": [], "requested_output_names": ["Y"], "model_name": "m"}
    del arguments[missing]
    with pytest.raises(TypeError, match=r"^__init__\(\): incompatible constructor arguments\."):
        InferenceRequest(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"inputs": [None]}, "Input tensor for request with id 'r' and model name 'm' should not be empty."),
        (
            {"requested_output_names": [""]},
            "Requested output name for request with id 'r' and model name 'm' should not be empty.",
        ),
        ({"correlation_id": 1.5}, "Correlation ID must be integer or string"),
    ],
)
def test_what_cannot_be_sent_is_refused(changes: dict[str, object], text: str) -> None:
    with pytest.raises(TritonModelException) as refused:
        make(request_id="r", **changes)
    assert str(refused.value) == text


def test_a_request_of_a_model_cannot_be_answered() -> None:
    with pytest.raises(TritonModelException, match="has no response sender"):
        make().get_response_sender()


def test_models_are_called_in_workers_only() -> None:
    with pytest.raises(TritonModelException, match=OUTSIDE):
        make().exec()
    with pytest.raises(TritonModelException, match=OUTSIDE):
        make().exec(decoupled=True)


def test_an_asynchronous_call_needs_a_running_loop() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        make().async_exec()


def test_an_asynchronous_call_outside_a_worker_is_refused() -> None:
    async def call() -> None:
        await make().async_exec()

    with pytest.raises(TritonModelException, match=OUTSIDE):
        asyncio.run(call())
