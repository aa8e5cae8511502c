"""The look for folders that came or went, beside the requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.server import refresher
from alipes.server.control import Control
from alipes.server.lifecycle import Lifecycle
from alipes.server.loader import LoaderPool
from alipes.server.refresher import Refresher
from support.data_plane import Control as Request
from support.data_plane import DataPlane
from support.waiting import until

TIMEOUT_S = 30


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresher, "INTERVAL_S", 0.01)


def test_new_folders_show_in_the_index(lifecycle: Lifecycle, data_plane: DataPlane, model: Callable[..., Path]) -> None:
    made = Refresher(lifecycle)
    made.start()
    model("m")
    until(lambda: [entry["name"] for entry in data_plane.index] == ["m"])
    assert made.stop(TIMEOUT_S)


def test_a_look_that_fails_is_not_the_last(
    lifecycle: Lifecycle, data_plane: DataPlane, model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh, calls = lifecycle.refresh, []

    def broken() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        refresh()

    monkeypatch.setattr(lifecycle, "refresh", broken)
    made = Refresher(lifecycle)
    made.start()
    model("m")
    until(lambda: data_plane.index)
    assert made.stop(TIMEOUT_S)


def test_a_look_that_hangs_holds_up_no_request(
    lifecycle: Lifecycle, data_plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr(lifecycle, "refresh", lambda: (begun.set(), may_end.wait(TIMEOUT_S)))
    made, pool = Refresher(lifecycle), LoaderPool(1)
    control = Control(data_plane, lifecycle, pool, allowed=True)  # type: ignore[arg-type]
    made.start()
    control.start()
    assert begun.wait(TIMEOUT_S)
    request = Request("unload", "m")
    data_plane.controls.put(request)
    assert request.replies.get(timeout=TIMEOUT_S) == (None, "")
    may_end.set()
    assert made.stop(TIMEOUT_S) and control.stop(TIMEOUT_S) and pool.stop(TIMEOUT_S)
