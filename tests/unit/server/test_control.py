"""Control requests: who may ask, what is understood, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.config.record_options import LogOptions
from alipes.server.control import Control
from alipes.server.lifecycle import Lifecycle
from alipes.server.loader import LoaderPool
from alipes.server.log import log
from support.data_plane import Control as Request
from support.data_plane import DataPlane

TIMEOUT_S = 30
Ask = Callable[[Request], tuple[str | None, str]]


@pytest.fixture
def pool() -> Iterator[LoaderPool]:
    made = LoaderPool(2)
    yield made
    made.stop(TIMEOUT_S)


@pytest.fixture
def ask(data_plane: DataPlane, lifecycle: Lifecycle, pool: LoaderPool) -> Iterator[Ask]:
    """Sends a request to a server that allows control, and returns the answer."""
    yield from _asking(data_plane, Control(data_plane, lifecycle, pool, allowed=True))  # type: ignore[arg-type]


@pytest.fixture
def ask_refused(data_plane: DataPlane, lifecycle: Lifecycle, pool: LoaderPool) -> Iterator[Ask]:
    """The same for a server that does not allow control."""
    yield from _asking(data_plane, Control(data_plane, lifecycle, pool, allowed=False))  # type: ignore[arg-type]


def _asking(data_plane: DataPlane, control: Control) -> Iterator[Ask]:
    def ask(request: Request) -> tuple[str | None, str]:
        data_plane.controls.put(request)
        return request.replies.get(timeout=TIMEOUT_S)

    control.start()
    yield ask
    assert control.stop(TIMEOUT_S)


def test_load_and_unload_are_carried_out(ask: Ask, data_plane: DataPlane, model: Callable[..., Path]) -> None:
    model("m")
    assert ask(Request("load", "m")) == (None, "")
    assert [version.version for version in data_plane.published["m"]] == [1]
    assert ask(Request("unload", "m", '{"unload_dependents": true}')) == (None, "")
    assert data_plane.published["m"] == []


def test_without_explicit_mode_both_are_refused(ask_refused: Ask, data_plane: DataPlane) -> None:
    refusal = ("UNAVAILABLE", "explicit model load / unload is not allowed if polling is enabled")
    assert ask_refused(Request("load", "m")) == refusal
    assert ask_refused(Request("unload", "m")) == refusal
    assert data_plane.history == []


def test_the_log_is_changed_in_every_mode(ask_refused: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[LogOptions] = []
    monkeypatch.setattr("alipes.server.control.change", changes.append)
    settings = {"verbose_level": 2, "info": True, "warning": False, "error": True, "format": "JSON"}
    assert ask_refused(Request("log", "", json.dumps(settings))) == (None, "")
    assert changes == [LogOptions(verbose_level=2, info=True, warning=False, error=True, format="JSON", file="")]


def test_the_log_says_last_what_a_client_turns_off(
    ask_refused: Ask, monkeypatch: pytest.MonkeyPatch, server_log: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("alipes.server.control.change", lambda options: log.info("changed %s", options.error))
    settings = {"verbose_level": 0, "info": True, "warning": True, "error": True, "format": "default"}
    with server_log.at_level("INFO", log.name):
        ask_refused(Request("log", "", json.dumps(settings)))
        ask_refused(Request("log", "", json.dumps(settings | {"warning": False, "error": False})))
    assert server_log.messages == ["changed True", "a client asks for a log without warnings, errors", "changed False"]


def test_a_failure_is_the_answer(ask: Ask) -> None:
    answer = ask(Request("load", "absent"))
    assert answer == ("INTERNAL", "failed to load 'absent', failed to poll from model repository")


def test_an_unexpected_failure_is_answered_without_traceback(
    ask: Ask, lifecycle: Lifecycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(model: str, override: object, *, announced: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(lifecycle, "load", broken)
    assert ask(Request("load", "m")) == ("INTERNAL", "failed to load 'm': ZeroDivisionError")


def test_one_failure_does_not_stop_the_next_request(ask: Ask, model: Callable[..., Path]) -> None:
    ask(Request("load", "absent"))
    model("m")
    assert ask(Request("load", "m")) == (None, "")


def test_a_request_after_the_pool_stopped_is_refused(ask: Ask, pool: LoaderPool) -> None:
    pool.stop(TIMEOUT_S)
    assert ask(Request("load", "m")) == ("UNAVAILABLE", "Server is stopping")


def test_files_that_come_with_a_request_are_loaded(ask: Ask, data_plane: DataPlane) -> None:
    port = {"data_type": "TYPE_FP32", "dims": [2]}
    config = {
        "backend": "onnxruntime",
        "max_batch_size": 4,
        "input": [{"name": "X", **port}],
        "output": [{"name": "Y", **port}],
    }
    parameters = {"config": json.dumps(config), "file:7/model.onnx": "b25ueA=="}
    assert ask(Request("load", "conjured", json.dumps(parameters))) == (None, "")
    assert [version.version for version in data_plane.published["conjured"]] == [7]
