"""A handle to a predictor outside a server: its arguments, its attempts, its fallback, and its errors."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import alipes
import numpy as np
import pytest
from alipes.client import Retry
from alipes.errors import (
    ConfigError,
    DeadlineExceeded,
    InferError,
    Internal,
    InvalidArgument,
    NotFound,
    NotReady,
    Overloaded,
    TransportError,
    Unauthenticated,
)
from alipes.predictor import Predictor, RetryBudget
from alipes.predictor.failures import failure_of
from alipes.predictor.remote import address_of
from alipes.worker.apps.predictor_flags import PredictorFlags, set_predictor_flags
from support.ports import unused_address

X = {"x": np.ones((1, 2), np.float32)}
QUICK = Retry(times=2, first_s=0.001, most_s=0.001)


@alipes.model
def doubled_number(x: float) -> float:
    return 2 * x


def test_without_a_server_a_handle_calls_the_function_of_its_name() -> None:
    predictor = Predictor("doubled_number")
    assert predictor.infer({"x": 3.0})["output_0"].tolist() == 6.0
    assert predictor.infer(3.0).tolist() == 6.0
    assert predictor.is_ready()
    assert asyncio.run(predictor.infer_async(4.0)).tolist() == 8.0


def test_a_predictor_that_is_away_is_not_ready_and_says_where_it_was() -> None:
    address = unused_address()
    predictor = Predictor("m", f"grpc://{address}", retry=QUICK)
    with pytest.raises(NotReady, match=rf"predictor 'm' at grpc://{address} does not answer: .*refused"):
        predictor.infer(X)
    assert not predictor.is_ready()


def test_further_attempts_stay_within_the_budget_of_all_calls() -> None:
    calls, reserve = 40, 3
    predictor = Predictor("m", f"http://{unused_address()}", retry=QUICK, budget=RetryBudget(0.1, reserve))
    attempts: list[object] = []
    link = predictor._linked(PredictorFlags())
    inner = link.infer

    async def counted(*arguments: Any) -> Any:
        attempts.append(arguments)
        return await inner(*arguments)

    link.infer = counted  # type: ignore[method-assign]
    for _ in range(calls):
        with pytest.raises(NotReady):
            predictor.infer(X)
    assert calls + reserve <= len(attempts) <= calls * 1.1 + reserve + 1e-6


def test_a_function_answers_where_the_predictor_fails() -> None:
    predictor = Predictor(
        "m", f"http://{unused_address()}", retry=QUICK, fallback=lambda inputs: {"y": inputs["x"] + 1}
    )
    assert predictor.infer(X)["y"].tolist() == [[2.0, 2.0]]


def test_a_coroutine_or_another_predictor_may_answer_instead() -> None:
    async def zero(inputs: Any) -> Any:
        await asyncio.sleep(0)
        return np.zeros(1)

    away = f"grpc://{unused_address()}"
    assert Predictor("m", away, retry=QUICK, fallback=zero).infer(X).tolist() == [0.0]
    second = Predictor("m", away, retry=QUICK, fallback=Predictor("doubled_number"))
    assert second.infer({"x": 2.0})["output_0"].tolist() == 4.0


def test_a_fallback_that_fails_too_leaves_the_first_reason() -> None:
    def broken(inputs: Any) -> Any:
        raise KeyError("nothing")

    predictor = Predictor("m", f"http://{unused_address()}", retry=QUICK, fallback=broken)
    with pytest.raises(NotReady, match=r"does not answer.*and its fallback fails: 'nothing'"):
        predictor.infer(X)


def test_a_call_that_cannot_be_right_goes_to_no_fallback() -> None:
    predictor = Predictor("m", f"http://{unused_address()}", fallback=lambda inputs: 1)
    for options in ({"version": "x"}, {"nothing": 1}):
        with pytest.raises(Internal, match="refuses the call"):
            predictor.infer(X, **options)  # type: ignore[arg-type]
    with pytest.raises(Internal, match="expected an array"):
        predictor.infer(None)


def test_a_call_without_an_answer_ends_with_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for scheme in ("grpc", "http"):
            predictor = Predictor("m", f"{scheme}://127.0.0.1:{port}", timeout_s=0.2)
            with pytest.raises(DeadlineExceeded, match=r"did not answer within 0\.2 s"):
                predictor.infer(X)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TransportError("no"), NotReady),
        (NotFound("no"), NotReady),
        (NotReady("no"), NotReady),
        (Overloaded("no"), Overloaded),
        (DeadlineExceeded("no"), DeadlineExceeded),
        (InvalidArgument("no"), Internal),
        (Unauthenticated("no"), Internal),
        (Internal("no"), Internal),
    ],
)
def test_the_caller_reads_whose_fault_a_failure_is(error: Any, expected: type[InferError]) -> None:
    failure = failure_of(error, "m", "there", 2.0)
    assert type(failure) is expected
    assert "predictor 'm' at there" in str(failure)


@pytest.mark.parametrize(
    ("flags", "address"),
    [
        ({}, None),
        ({"host": "iris-predictor.ns"}, "http://iris-predictor.ns:80"),
        ({"host": "localhost:8085"}, "http://localhost:8085"),
        ({"host": "iris", "use_ssl": True}, "https://iris:443"),
        ({"host": "iris:9000", "protocol": "grpc-v2"}, "grpc://iris:9000"),
        ({"host": "[::1]", "protocol": "grpc-v2", "use_ssl": True}, "grpcs://[::1]:443"),
        ({"host": "[::1]:9", "protocol": "grpc-v2"}, "grpc://[::1]:9"),
        ({"host": "unix:/run/p", "protocol": "v2"}, "http://unix:/run/p"),
    ],
)
def test_flags_name_the_address_of_the_predictor(flags: dict[str, Any], address: str | None) -> None:
    assert address_of(PredictorFlags(**flags)) == address


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"model": 3}, "model"),
        ({"address": 8001}, "address"),
        ({"address": "ftp://x"}, "ftp"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"retry": 3}, "retry"),
        ({"budget": 0.1}, "budget"),
        ({"fallback": 3}, "fallback"),
    ],
)
def test_a_handle_refuses_what_it_cannot_use(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Predictor(**arguments)


def test_a_handle_without_a_model_says_where_to_name_it() -> None:
    with pytest.raises(ConfigError, match="--model-name=iris"):
        Predictor().infer(X)


def test_a_handle_to_the_app_itself_is_refused() -> None:
    set_predictor_flags({"model": "m"})
    try:
        with pytest.raises(ConfigError, match="say where it is, with --predictor-host"):
            Predictor().infer(X)
    finally:
        set_predictor_flags({})
