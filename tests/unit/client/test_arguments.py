"""Arguments of a wrong type raise an error of ours that names the argument, before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from alipes.client import AsyncClient, Client, Options, Retry
from alipes.client.arguments import timeout_of, version_number, version_text
from alipes.client.plain.options import RequestOptions, read_options
from alipes.errors import ConfigError, InvalidArgument

X = np.ones((1, 2), np.float32)
NOBODY = "http://127.0.0.1:1"

SETTINGS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((8001,), {}, "address: expected text such as 'localhost:8001', or a list of such texts, got 8001 (int)"),
    ((None,), {}, "address: expected text such as 'localhost:8001', or a list of such texts, got None"),
    (("",), {}, "address: expected text such as 'localhost:8001', got '' (str)"),
    ((NOBODY,), {"timeout_s": "1"}, "timeout_s: expected seconds as a number, got '1' (str)"),
    ((NOBODY,), {"timeout": True}, "timeout: expected seconds as a number, got True (bool)"),
    ((NOBODY,), {"timeout": 1, "timeout_s": 2}, "timeout and timeout_s mean the same, got 1 and 2: pass one"),
    ((NOBODY,), {"timeout": -1}, "timeout: expected seconds above 0, or None, got -1 (int)"),
    ((NOBODY,), {"timeout_s": 0}, "timeout_s: expected seconds above 0, or None, got 0 (int)"),
    ((NOBODY,), {"connect_timeout_s": [1]}, "connect_timeout_s: expected seconds as a number, got [1] (list)"),
    ((NOBODY,), {"retry": 3}, "retry: expected a Retry, such as Retry(times=3), got 3 (int)"),
    ((NOBODY,), {"headers": ["a"]}, "headers: expected a dictionary of texts, got ['a'] (list)"),
    ((NOBODY,), {"headers": {"a": 1}}, "headers['a']: expected a text, with a text as its name, got 1 (int)"),
    ((NOBODY,), {"tls": True}, "tls: expected a Tls, such as Tls(roots='server.pem'), got True (bool)"),
]

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("infer", (3, X), {}, "model: expected the model's name as text, got 3 (int)"),
    ("infer", (["m"], X), {}, "model: expected the model's name as text, got ['m'] (list)"),
    ("infer", ("m", None), {}, "inputs: expected an array, or a dictionary of arrays by input, got None"),
    ("infer", ("m", {1: X}), {}, "inputs: expected names of inputs as text, got 1 (int)"),
    ("infer", ("m", X), {"timeout_s": "1"}, "timeout_s: expected seconds as a number, got '1' (str)"),
    ("infer", ("m", X), {"timeout": "1"}, "timeout: expected seconds as a number, got '1' (str)"),
    ("infer", ("m", X), {"timeout": 1, "timeout_s": 2}, "timeout and timeout_s mean the same, got 1 and 2: pass one"),
    (
        "infer",
        ("m", X),
        {"timeout": -1},
        "timeout: expected seconds above 0, or None, got -1 (int)",
    ),
    (
        "infer",
        ("m", X),
        {"timeout_s": 0.0},
        "timeout_s: expected seconds above 0, or None, got 0.0 (float)",
    ),
    (
        "metadata",
        ("m",),
        {"timeout": float("nan")},
        "timeout: expected seconds above 0, or None, got nan (float)",
    ),
    ("infer", ("m", X), {"outputs": "Y"}, "outputs: expected a list of names: ['Y'], got 'Y' (str)"),
    ("infer", ("m", X), {"outputs": 5}, "outputs: expected a list of names, got 5 (int)"),
    ("infer", ("m", X), {"outputs": [["Y"]]}, "outputs: expected names of outputs as text, got ['Y'] (list)"),
    ("infer", ("m", X), {"version": 1.5}, "version: expected a number such as 1 or '1', got 1.5 (float)"),
    ("infer", ("m", X), {"version": "one"}, "version: expected a number such as 1 or '1', got 'one' (str)"),
    ("ask", ("m", X), {"version": True}, "version: expected a number such as 1 or '1', got True (bool)"),
    (
        "ask",
        ("m", X),
        {"version": 1, "model_version": 2},
        "version and model_version mean the same, got 1 and 2: pass one",
    ),
    ("ask", ("m", X), {"request_id": 7}, "request_id: expected text such as '7', got 7 (int)"),
    (
        "ask",
        ("m", X),
        {"sequence_id": 1.5},
        "sequence_id: expected a whole number of 64 bits without a sign, or text, got 1.5 (float)",
    ),
    ("ask", ("m", X), {"priority": -1}, "priority: expected a whole number from 0 on, got -1 (int)"),
    ("ask", ("m", X), {"sequence_start": "yes"}, "sequence_start: expected True or False, got 'yes' (str)"),
    ("ask", ("m", X), {"priority": "high"}, "priority: expected a whole number from 0 on, got 'high' (str)"),
    ("ask", ("m", X), {"queue_timeout_s": "1"}, "queue_timeout_s: expected seconds as a number, got '1' (str)"),
    ("ask", ("m", X), {"parameters": [1]}, "parameters: expected a dictionary, got [1] (list)"),
    ("metadata", (3,), {}, "model: expected the model's name as text, got 3 (int)"),
    ("config", ("m", []), {}, "version: expected a number such as 1 or '1', got [] (list)"),
    ("ready", (), {"version": 1}, "version: expected a model beside it, got '1' alone"),
    ("load", (b"m",), {}, "model: expected the model's name as text, got b'm' (bytes)"),
    ("load", ("m",), {"config": 5}, "config: expected a configuration as a dictionary or as JSON, got 5 (int)"),
    ("unload", (None,), {}, "model: expected the model's name as text, got None"),
    ("share", (1.5,), {}, "byte_size: expected a whole number, got 1.5 (float)"),
]


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(("arguments", "options", "text"), SETTINGS)
def test_a_client_names_the_setting_that_is_wrong(
    kind: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        kind(*arguments, **options)
    assert str(raised.value) == text


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(("method", "arguments", "options", "text"), CALLS)
def test_a_call_names_the_argument_that_is_wrong(
    kind: Callable[..., Any], method: str, arguments: tuple[Any, ...], options: dict[str, Any], text: str
) -> None:
    def call() -> object:
        outcome = getattr(kind(NOBODY), method)(*arguments, **options)
        return asyncio.run(outcome) if kind is AsyncClient else outcome

    with pytest.raises(InvalidArgument) as raised:
        call()
    assert str(raised.value) == text


def test_an_unknown_option_is_answered_with_the_likeliest_ones() -> None:
    with pytest.raises(InvalidArgument, match=r"^a request has no option 'factor': inputs go into one dictionary, "):
        read_options({"factor": 3})
    with pytest.raises(InvalidArgument, match=r"^a request has no option 'prioritty': there are 'priority', "):
        Client(NOBODY).infer("m", X, prioritty=1)  # type: ignore[call-overload]
    with pytest.raises(InvalidArgument, match=r"no option 'output': there are 'outputs', "):
        Client(NOBODY).ask("m", X, output=["Y"])  # type: ignore[call-arg]


def test_the_typed_options_are_the_fields_of_a_request() -> None:
    assert RequestOptions.__annotations__.keys() - Options.__dataclass_fields__.keys() == {"model_version"}
    assert Options.__dataclass_fields__.keys() <= RequestOptions.__annotations__.keys()
    assert not RequestOptions.__required_keys__


def test_options_are_read_into_the_fields_of_a_request() -> None:
    assert read_options({}) == Options()
    assert read_options({"version": 2, "priority": np.int32(1), "request_id": "a", "queue_timeout_s": 1}) == Options(
        version="2", request_id="a", priority=1, queue_timeout_s=1.0
    )
    assert read_options({"model_version": "3", "sequence_id": None, "parameters": None}) == Options(version="3")


@pytest.mark.parametrize(
    ("version", "text", "number"), [(None, "", -1), ("", "", -1), (-1, "", -1), (4, "4", 4), ("4", "4", 4)]
)
def test_a_version_has_one_form_for_each_protocol(version: Any, text: str, number: int) -> None:
    assert (version_text(version), version_text(None, version), version_text(version, version)) == (text, text, text)
    assert version_number(version) == number


@pytest.mark.parametrize("seconds", [1, 1.0, np.float32(1), np.int64(1)])
def test_a_time_is_any_number(seconds: Any) -> None:
    assert timeout_of(seconds) == timeout_of(None, seconds) == 1.0
    assert Client(NOBODY, timeout=seconds).timeout_s == 1.0


def test_no_limit_is_not_the_default_limit() -> None:
    assert Client(NOBODY).timeout_s == Client(NOBODY, timeout=60).timeout_s == 60
    assert Client(NOBODY, timeout=None).timeout_s is None
    assert Client(NOBODY, timeout_s=None).timeout_s is None


def test_a_client_shows_its_server() -> None:
    assert repr(Client("localhost:1", retry=Retry(times=0))) == "Client('grpc://localhost:1')"
    assert repr(AsyncClient(NOBODY)) == f"AsyncClient('{NOBODY}')"
