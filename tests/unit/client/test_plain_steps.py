"""The verbs of both clients, as steps that a test performs."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import ANY

import pytest
from alipes.client.plain.retry import Retry
from alipes.client.plain.steps import ControlStep, InferStep, Pause, Step, Steps
from alipes.client.plain.sync import Client
from alipes.errors import InferError, InvalidArgument, NotReady, TransportError, Unsupported

METADATA = {"name": "m", "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1]}], "outputs": []}
CONFIG = {"input": [{"name": "x"}]}


@pytest.fixture
def client() -> Client:
    return Client("http://127.0.0.1:1", retry=Retry(times=1, first_s=0.5))


def answer(steps: Steps[Any], *outcomes: object) -> tuple[list[Step], Any]:
    """Performs a verb with the given outcomes of its steps; returns the steps and the verb's result."""
    step, made = next(steps), []
    try:
        for outcome in outcomes:
            made.append(step)
            step = steps.throw(outcome) if isinstance(outcome, BaseException) else steps.send(outcome)
    except StopIteration as stop:
        return made, stop.value
    raise AssertionError(f"the verb goes on with {step}")


def body(document: object) -> bytes:
    return json.dumps(document).encode()


def test_a_temporary_error_is_followed_by_a_pause_and_a_second_attempt(client: Client) -> None:
    call = client._call_steps(client._operations.metadata("m", ""))
    steps, result = answer(call, NotReady("loading"), None, body(METADATA))
    assert result == METADATA
    assert [type(step) for step in steps] == [ControlStep, Pause, ControlStep]


def test_an_error_after_the_last_attempt_is_raised(client: Client) -> None:
    call = client._call_steps(client._operations.metadata("m", ""))
    with pytest.raises(NotReady, match="again"):
        answer(call, NotReady("once"), None, NotReady("again"))


def test_a_failed_probe_is_false_without_a_second_attempt(client: Client) -> None:
    nobody = TransportError("nobody")
    nobody.reached = False
    steps, result = answer(client._probe_steps(client._operations.ready()), nobody)
    assert (result, len(steps)) == (False, 1)


def test_what_answers_strangely_is_looked_at_once(client: Client) -> None:
    call = client._operations.metadata("m", "")

    def broke() -> list[object]:
        return [TransportError("broke"), None, TransportError("broke")]

    with pytest.raises(TransportError, match=r"^broke; it is gRPC$"):
        answer(client._call_steps(call), *broke(), "it is gRPC")
    with pytest.raises(TransportError, match=r"^broke; it is gRPC$"):
        answer(client._call_steps(call), *broke())
    # A server that has answered is the right one.
    assert answer(client._call_steps(call), body(METADATA))[1] == METADATA
    with pytest.raises(TransportError, match=r"^broke$"):
        answer(client._call_steps(call), *broke())


def test_advice_keeps_the_class_of_the_error(client: Client) -> None:
    call = client._operations.index()
    with pytest.raises(Unsupported, match=r"^no such route; it is gRPC$") as caught:
        answer(client._call_steps(call), Unsupported("no such route"), "it is gRPC")
    assert caught.value.message == str(caught.value)


def test_a_health_call_does_not_say_that_the_server_is_the_right_one(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    probe = client._operations.ready()
    for _ in range(2):
        assert answer(client._probe_steps(probe), b"", "it is its metrics") == ([ANY, ANY], False)
    assert caplog.messages == ["it is its metrics"]
    call = client._operations.metadata("m", "")
    with pytest.raises(TransportError, match=r"; it is its metrics$"):
        answer(client._call_steps(call), b"")
    # A server that takes the port later is looked at anew.
    assert answer(client._probe_steps(probe), b"", None)[1]
    assert answer(client._probe_steps(probe), b"") == ([ANY], True)


def test_a_server_without_configurations_requires_no_input(client: Client) -> None:
    _, signature = answer(client._signature_steps("m", ""), body(METADATA), InferError("no such route"))
    assert signature.required == frozenset()


def test_a_loaded_model_is_described_anew(client: Client) -> None:
    answer(client._signature_steps("m", ""), body(METADATA), body(CONFIG))
    assert ("m", "") in client._signatures
    answer(client._load_steps("m", None, None, None), b"")
    assert client._signatures == {}


def test_inputs_that_do_not_fit_are_checked_against_a_fresh_signature(client: Client) -> None:
    answer(client._signature_steps("m", ""), body(METADATA), body(CONFIG))
    changed = METADATA | {"inputs": [{"name": "y", "datatype": "FP32", "shape": [-1]}]}
    reload = (body(changed), body({"input": [{"name": "y"}]}))
    with pytest.raises(InvalidArgument, match="has no input 'z'"):
        infer = client._infer_steps("m", {"z": [1.0]}, None, None, _options())
        answer(infer, *reload, *reload)
    response = ({}, "1", "", {})
    steps, (_, answered) = answer(client._infer_steps("m", {"y": [1.0]}, None, None, _options()), response)
    assert ([type(step) for step in steps], answered.version) == ([InferStep], "1")


def test_a_region_that_the_server_refuses_is_released(client: Client) -> None:
    with pytest.raises(InferError):
        answer(client._share_steps(64), InferError("not on this machine"))
    assert client._regions == ()


def _options() -> Any:
    from alipes.client import Options

    return Options()
