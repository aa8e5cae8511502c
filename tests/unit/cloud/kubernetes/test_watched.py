"""One object that is waited for, at an API server that the test plays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from alipes.cloud.kubernetes import waiting
from alipes.cloud.kubernetes.api import Api
from alipes.cloud.kubernetes.refusals import NotObserved, Refused
from alipes.cloud.kubernetes.resources import DEPLOYMENTS
from alipes.cloud.kubernetes.waiting import Look, Wait
from alipes.cloud.kubernetes.watched import Watched


@dataclass
class Server:
    """An API server with one deployment, and a clock that its watches move."""

    deployment: dict[str, Any] | None
    now_s: float = 0.0

    def get(self, path: str) -> dict[str, Any]:
        if self.deployment is None:
            raise Refused("not found", 404, "NotFound")
        return self.deployment

    def watch(self, path: str, for_s: int, **query: object) -> Iterator[dict[str, Any]]:
        self.now_s += for_s
        yield from ()

    def wait(self) -> object:
        watched = Watched(cast(Api, self), DEPLOYMENTS, "default", "d", "deployment default/d")
        one = Wait(watched.what, clock=lambda: self.now_s, pause=lambda seconds: None)
        return watched.wait(one, lambda api, found: Look(found if found["status"] else None, "words"))


def deployment(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "d", "namespace": "default", "generation": 1, "resourceVersion": "1"},
        "status": status,
    }


def test_a_status_that_nobody_writes_ends_the_wait() -> None:
    server = Server(deployment())
    with pytest.raises(ValueError, match="has no status after 10 s: no controller works on it") as found:
        server.wait()
    assert isinstance(found.value, NotObserved)
    assert 10.0 <= server.now_s <= 13.0


def test_an_object_that_is_not_there_ends_the_wait_at_once() -> None:
    with pytest.raises(RuntimeError, match=r"^there is no deployment default/d$"):
        Server(None).wait()


@dataclass
class Shown:
    """What a line of progress is said to show."""

    title: str = ""
    steps: list[str] = field(default_factory=list)
    shown: bool = True

    def step(self, what: str, total: float | None = None) -> None:
        self.steps.append(what)

    def advance(self, amount: float = 1) -> None:
        """Nothing."""


def test_a_wait_shows_what_it_waits_for_and_how_far_it_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown()

    @contextmanager
    def task(title: str, *, show: bool | None) -> Iterator[Shown]:
        shown.title = title
        yield shown

    monkeypatch.setattr(waiting, "task", task)
    looks = iter([Look[str](None, "0 of 2"), Look[str](None, "1 of 2"), Look("ready")])
    Wait("deployment d").until(lambda: next(looks), lambda for_s: None)
    assert (shown.title, shown.steps) == ("waiting for deployment d", ["0 of 2", "1 of 2"])
