"""When an idle server ends: only after it has seen that nobody came before it stopped to accept."""

from __future__ import annotations

import threading

from alipes.activation.backoff import Backoff
from alipes.server.idle_watch import IdleWatch
from support.waiting import TIMEOUT_S, until


class DataPlane:
    """Idle for as long as it was told, each time that it is asked."""

    def __init__(self, *idle_s: float, pauses: bool = True) -> None:
        self.left = list(idle_s)
        self.pauses = pauses
        self.calls: list[str] = []

    def idle_s(self) -> float:
        self.calls.append("idle")
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def pause_accepting(self, deadline_s: float) -> bool:
        assert deadline_s > 0
        self.calls.append("pause")
        return self.pauses

    def resume_accepting(self) -> None:
        self.calls.append("resume")


def test_the_last_look_comes_after_the_pause() -> None:
    plane, ended = DataPlane(0.001, 5.0), threading.Event()
    watch = IdleWatch(plane, 0.01, ended.set)
    watch.start()
    assert ended.wait(TIMEOUT_S)
    assert plane.calls == ["idle", "idle", "pause", "idle"]
    assert watch.stop(TIMEOUT_S)
    assert watch.is_over


def test_whoever_came_before_the_pause_keeps_the_server() -> None:
    plane, ended = DataPlane(5.0, 0.0, 0.0), threading.Event()
    watch = IdleWatch(plane, 0.01, ended.set)
    watch.start()
    until(lambda: "resume" in plane.calls)
    assert watch.stop(TIMEOUT_S)
    assert not watch.is_over
    assert plane.calls[:4] == ["idle", "pause", "idle", "resume"]
    assert not ended.is_set()


def test_a_listener_that_does_not_pause_keeps_the_server() -> None:
    plane, ended = DataPlane(5.0, pauses=False), threading.Event()
    watch = IdleWatch(plane, 0.01, ended.set)
    watch.start()
    until(lambda: plane.calls.count("pause") > 1)
    assert watch.stop(TIMEOUT_S)
    assert not watch.is_over
    assert "resume" not in plane.calls


def test_a_watch_that_never_began_has_ended_nothing() -> None:
    watch = IdleWatch(DataPlane(9.0), 1.0, lambda: None)
    assert watch.stop(0.0)
    assert not watch.is_over


def test_waits_double_until_a_start_succeeds() -> None:
    backoff = Backoff()
    assert [backoff.fail() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    backoff.succeed()
    assert backoff.fail() == 1
