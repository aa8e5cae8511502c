"""Control requests: who may ask, what is understood, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.server.control import Control, load_override
from alipes.server.lifecycle import Lifecycle, LoadFailed
from alipes.server.loader import LoaderPool
from support.data_plane import Control as Request
from support.data_plane import DataPlane

PATIENCE_S = 30
Ask = Callable[[Request], tuple[str | None, str]]


@pytest.fixture
def pool() -> Iterator[LoaderPool]:
    made = LoaderPool(2)
    yield made
    made.stop(PATIENCE_S)


@pytest.fixture
def ask(data_plane: DataPlane, lifecycle: Lifecycle, pool: LoaderPool) -> Iterator[Ask]:
    """Sends a request to a server that allows control, and returns the answer."""
    yield from _asking(data_plane, Control(data_plane, lifecycle, pool, allowed=True))  # type: ignore[arg-type]


@pytest.fixture
def ask_in_vain(data_plane: DataPlane, lifecycle: Lifecycle, pool: LoaderPool) -> Iterator[Ask]:
    """The same for a server that does not allow control."""
    yield from _asking(data_plane, Control(data_plane, lifecycle, pool, allowed=False))  # type: ignore[arg-type]


def _asking(data_plane: DataPlane, control: Control) -> Iterator[Ask]:
    def ask(request: Request) -> tuple[str | None, str]:
        data_plane.controls.put(request)
        return request.replies.get(timeout=PATIENCE_S)

    control.start()
    yield ask
    assert control.stop(PATIENCE_S)


def test_load_and_unload_are_carried_out(ask: Ask, data_plane: DataPlane, model: Callable[..., Path]) -> None:
    model("m")
    assert ask(Request("load", "m")) == (None, "")
    assert [version.version for version in data_plane.published["m"]] == [1]
    assert ask(Request("unload", "m", '{"unload_dependents": true}')) == (None, "")
    assert data_plane.published["m"] == []


def test_without_explicit_mode_both_are_refused(ask_in_vain: Ask, data_plane: DataPlane) -> None:
    refusal = ("UNAVAILABLE", "explicit model load / unload is not allowed if polling is enabled")
    assert ask_in_vain(Request("load", "m")) == refusal
    assert ask_in_vain(Request("unload", "m")) == refusal
    assert data_plane.history == []


def test_a_failure_is_the_answer(ask: Ask) -> None:
    answer = ask(Request("load", "absent"))
    assert answer == ("INTERNAL", "failed to load 'absent', failed to poll from model repository")


def test_an_unexpected_failure_is_answered_without_traceback(
    ask: Ask, lifecycle: Lifecycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(model: str, override: str | None) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(lifecycle, "load", broken)
    assert ask(Request("load", "m")) == ("INTERNAL", "failed to load 'm': ZeroDivisionError")


def test_one_failure_does_not_stop_the_next_request(ask: Ask, model: Callable[..., Path]) -> None:
    ask(Request("load", "absent"))
    model("m")
    assert ask(Request("load", "m")) == (None, "")


def test_a_request_after_the_pool_stopped_is_refused(ask: Ask, pool: LoaderPool) -> None:
    pool.stop(PATIENCE_S)
    assert ask(Request("load", "m")) == ("UNAVAILABLE", "Server is stopping")


def test_the_configuration_of_the_request_is_taken() -> None:
    assert load_override("m", {"config": "{}"}) == "{}"
    assert load_override("m", {}) is None


@pytest.mark.parametrize(
    ("parameters", "code", "text"),
    [
        ({"color": "red"}, "INVALID_ARG", "unrecognized load parameter 'color'."),
        ({"config": 1}, "INVALID_ARG", "load parameter 'config' must be a string"),
        (
            {"file:1/model.onnx": "AA=="},
            "INTERNAL",
            "failed to load 'm', failed to poll from model repository",
        ),
        (
            {"config": "{}", "file:1/model.onnx": "AA=="},
            "UNSUPPORTED",
            "load parameter 'file:1/model.onnx' is not offered: files come from the repository",
        ),
    ],
)
def test_a_parameter_that_is_not_understood_is_named(parameters: dict[str, object], code: str, text: str) -> None:
    with pytest.raises(LoadFailed) as failure:
        load_override("m", json.loads(json.dumps(parameters)))
    assert (failure.value.code, str(failure.value)) == (code, text)
