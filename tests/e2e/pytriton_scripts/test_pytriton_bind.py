"""What a script binds is served, and what cannot be served is refused with one error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import InferError
from alipes.compat.pytriton import constants
from alipes.compat.pytriton.client import ModelClient
from alipes.compat.pytriton.client.exceptions import PyTritonClientInferenceServerError
from alipes.compat.pytriton.decorators import batch
from alipes.compat.pytriton.exceptions import (
    PyTritonBadParameterError,
    PyTritonInvalidOperationError,
    PyTritonValidationError,
)
from alipes.compat.pytriton.settings import ModelConfig, ModelWarmup, Tensor, WarmupInput
from alipes.compat.pytriton.triton import Triton
from support.pytriton_server import VALUE, bind, http, make_triton

ONE = np.array([1], np.float32)


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Triton]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "PYTRITON_HOME", tmp_path_factory.mktemp("home"))
        with make_triton() as running:
            yield running


def ask(triton: Triton, model: str, value: Any = ONE, **options: Any) -> Any:
    with ModelClient(http(triton), model, init_timeout_s=30, **options) as client:
        return client.infer_sample(value)


def refused(triton: Triton, model: str) -> str:
    with pytest.raises(PyTritonClientInferenceServerError) as caught:
        ask(triton, model)
    return str(caught.value).partition("\n\nAt:")[0]


@batch
def double(x: Any) -> Any:
    return {"y": 2 * x}


def test_the_server_is_this_processs_own(triton: Triton) -> None:
    calls: list[int] = []

    def count(requests: Any) -> Any:
        calls.append(len(requests))
        return [{"y": request["x"] + len(calls)} for request in requests]

    bind(triton, count, "closure")
    assert [ask(triton, "closure")["y"].tolist() for _ in range(3)] == [[2], [3], [4]]
    assert calls == [1, 1, 1]


def test_an_exception_fails_its_request_alone(triton: Triton) -> None:
    def picky(requests: Any) -> Any:
        if requests[0]["x"][0, 0] < 0:
            raise KeyError("below zero")
        return [{"y": request["x"]} for request in requests]

    bind(triton, picky, "picky")
    with pytest.raises(PyTritonClientInferenceServerError, match=r"KeyError: 'below zero'\n\nAt:\n  \S+: picky\n$"):
        ask(triton, "picky", -ONE)
    assert ask(triton, "picky")["y"] == 1


def test_outputs_get_the_declared_type_unless_strict(triton: Triton) -> None:
    def wide(requests: Any) -> Any:
        return [{"y": request["x"].astype(np.float64), "more": request["x"]} for request in requests]

    bind(triton, wide, "wide")
    assert ask(triton, "wide")["y"].dtype == np.float32
    bind(triton, wide, "strict", strict=True)
    assert "Returned output `y` for model `strict` has invalid type. Returned: float64 (f)." in refused(
        triton, "strict"
    )


def test_text_is_sent_encoded(triton: Triton) -> None:
    triton.bind(
        "text",
        lambda requests: [{"words": np.array([["ü", "x"]])} for _ in requests],
        inputs=[Tensor(name="x", **VALUE)],
        outputs=[Tensor(name="words", dtype=bytes, shape=(-1,))],
    )
    assert ask(triton, "text")["words"].tolist() == ["ü".encode(), b"x"]


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (lambda requests: None, "must be list of response dicts with numpy arrays. Got outputs=None instead."),
        (lambda requests: [], "(0) does not match number of requests (1) received from Triton."),
        (lambda requests: [{"y": 5}], "Not all values returned by `{}` model callable are numpy arrays"),
    ],
    ids=["none", "too few", "number"],
)
def test_a_wrong_result_fails_the_request(triton: Triton, returned: Any, text: str, request: Any) -> None:
    name = request.node.callspec.id.replace(" ", "-")
    bind(triton, returned, name)
    assert text.format(name) in refused(triton, name)


def test_a_generator_needs_a_decoupled_model(triton: Triton) -> None:
    def once(requests: Any) -> Any:
        yield [{"y": request["x"]} for request in requests]

    def twice(requests: Any) -> Any:
        yield from once(requests)
        yield from once(requests)

    async def awaited(requests: Any) -> Any:
        yield [{"y": request["x"]} for request in requests]

    bind(triton, once, "once")
    bind(triton, twice, "twice")
    bind(triton, awaited, "awaited")
    assert ask(triton, "once")["y"] == ask(triton, "awaited")["y"] == 1
    assert "yielded 2 times, and a request has one response: bind it with ModelConfig(decoupled=True)" in refused(
        triton, "twice"
    )


def test_a_warm_up_calls_the_function_first(triton: Triton, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[tuple[int, ...]] = []

    def noting(requests: Any) -> Any:
        seen.append(requests[0]["x"].shape)
        if requests[0]["x"][0, 0] == 0:
            raise ValueError("not yet")
        return [{"y": request["x"]} for request in requests]

    warmup = ModelWarmup("w", 3, {"x": WarmupInput(np.float32, (1,), zero_data=True)}, count=2)
    with caplog.at_level(logging.WARNING, "alipes.compat.pytriton"):
        bind(triton, noting, "warm", config={"model_warmup": [warmup]})
    assert seen == [(3, 1), (3, 1)]
    assert "warm-up of model warm, instance 0, failed: not yet" in caplog.text
    assert ask(triton, "warm")["y"] == 1


def test_equal_requests_may_be_answered_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "PYTRITON_HOME", tmp_path)
    calls: list[int] = []

    def count(requests: Any) -> Any:
        calls.append(1)
        return [{"y": request["x"]} for request in requests]

    with make_triton({"cache_config": ["local,size=1048576"]}) as triton:
        bind(triton, count, config={"response_cache": True})
        assert [ask(triton, "m")["y"] for _ in range(3)] == [1, 1, 1]
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"name": ""}, PyTritonValidationError, "Model name cannot be empty"),
        ({"name": "a/b"}, PyTritonValidationError, "Model name can only contain alphanumeric characters, dots, "),
        ({"function": 5}, PyTritonValidationError, "inference_fn has to be either callable or sequence of callables"),
        ({"function": [5]}, PyTritonValidationError, "inference_fn has to be either callable or sequence of callables"),
        (
            {"config": {"max_batch_size": 0}},
            PyTritonBadParameterError,
            "`max_batch_size` must be greater or equal to 1",
        ),
    ],
    ids=["no name", "a path", "no function", "no functions", "no rows"],
)
def test_what_cannot_be_bound_is_refused(triton: Triton, options: dict[str, Any], kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        bind(triton, **{"function": double, "name": "refused", **options})


def test_an_output_cannot_be_optional(triton: Triton) -> None:
    with pytest.raises(PyTritonValidationError, match=r"^Output tensors cannot be optional.$"):
        triton.bind("m", double, inputs=[Tensor(name="x", **VALUE)], outputs=[Tensor(optional=True, **VALUE)])


def test_a_type_that_cannot_be_sent_is_refused(triton: Triton) -> None:
    with pytest.raises(PyTritonBadParameterError, match=r"^The type complex64 cannot be sent"):
        triton.bind("m", double, inputs=[Tensor((1,), np.complex64)], outputs=[Tensor(**VALUE)], config=ModelConfig())


def test_a_name_is_for_one_model(triton: Triton) -> None:
    bind(triton, double, "Taken")
    with pytest.raises(PyTritonInvalidOperationError, match=r"^Cannot add model with the same name twice.$"):
        bind(triton, double, "taken")


def test_a_load_that_fails_is_raised_and_leaves_nothing(triton: Triton) -> None:
    with pytest.raises((InferError, ValueError), match="max_batch_size"):
        bind(triton, double, "later", config={"max_batch_size": 2**40})
    bind(triton, double, "later")
    assert ask(triton, "later")["y"] == 2
