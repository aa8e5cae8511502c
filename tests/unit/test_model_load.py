"""A load under way: its age, its limit, and what a cancellation ends."""

from __future__ import annotations

import threading

import pytest
from alipes.model_load import SUPERSEDED, Load, LoadCancelled
from alipes.types import ModelKey

TIMEOUT_S = 30


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("alipes.model_load.time", made)
    return made


def reason_of(load: Load) -> str:
    with pytest.raises(LoadCancelled) as cancelled:
        load.check()
    assert cancelled.value.code == "UNAVAILABLE"
    return str(cancelled.value)


def test_a_load_goes_on_until_its_time_is_up(clock: Clock) -> None:
    load = Load(ModelKey("m"), timeout_s=5)
    clock.now += 4
    load.cancel_if_late()
    load.check()
    assert (load.age_s, load.remaining_s) == (4, 1)
    clock.now += 1
    load.cancel_if_late()
    assert reason_of(load) == "the load took longer than the 5 s that --model-load-timeout-secs allows"
    assert (load.remaining_s, load.is_superseded) == (0, False)


def test_a_load_without_limit_takes_as_long_as_it_takes(clock: Clock) -> None:
    load = Load(ModelKey("m"))
    clock.now += 1e9
    load.cancel_if_late()
    load.check()
    assert load.remaining_s is None


def test_the_time_in_which_it_waits_for_others_is_not_its_own(clock: Clock) -> None:
    load = Load(ModelKey("m"), timeout_s=5)
    clock.now += 1
    with load.waiting():
        clock.now += 100
    load.cancel_if_late()
    load.check()
    assert load.age_s == 1


def test_a_cancellation_ends_what_is_under_way_once() -> None:
    load, ended = Load(), []
    with load.ending(lambda: ended.append("one")), load.ending(lambda: ended.append("other")):
        load.cancel()
        load.cancel("for another reason")
    assert sorted(ended) == ["one", "other"]
    assert reason_of(load) == SUPERSEDED
    assert load.is_superseded


def test_what_has_ended_is_not_ended_again() -> None:
    load, ended = Load(), []
    with load.ending(lambda: ended.append("one")):
        pass
    load.cancel()
    assert ended == []


def test_what_begins_after_a_cancellation_is_ended_at_once() -> None:
    load, ended = Load(), []
    load.cancel()
    with load.ending(lambda: ended.append("one")):
        assert ended == ["one"]


@pytest.mark.parametrize("end", ["cancel", "interrupt"])
def test_a_pause_ends_with_the_load(end: str) -> None:
    load, over = Load(), threading.Event()
    thread = threading.Thread(target=lambda: (load.pause(1e6), over.set()))
    thread.start()
    getattr(load, end)()
    assert over.wait(TIMEOUT_S)
    thread.join()
