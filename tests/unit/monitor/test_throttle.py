"""A steady rate, on a clock that the test moves."""

from __future__ import annotations

import pytest
from alipes.errors import MonitorError
from alipes.monitor import Throttle


class Clock:
    """Time that passes by sleeping, or because the test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 9))
        self.now += seconds


def throttle(clock: Clock, **options: object) -> Throttle:
    return Throttle(10, clock=clock, sleep=clock.sleep, **options)  # type: ignore[arg-type]


def test_the_first_turn_comes_at_once_and_the_others_when_it_is_time() -> None:
    clock = Clock()
    turns = throttle(clock)
    for _ in range(3):
        next(turns)
        clock.now += 0.03
    assert clock.slept == [0.07, 0.07]


def test_who_falls_behind_catches_up() -> None:
    clock = Clock()
    with throttle(clock) as turns:
        turns.throttle()
        clock.now += 0.35
        for _ in range(4):
            turns.throttle()
    assert clock.slept == [0.05]


def test_what_was_missed_long_ago_is_let_go() -> None:
    clock = Clock()
    turns = throttle(clock, update_every=5)
    next(turns)
    clock.now += 100
    next(turns)
    next(turns)
    assert clock.slept == [0.1]


def test_turns_end_once_the_condition_holds() -> None:
    clock = Clock()
    begun = clock.now
    assert len(list(throttle(clock, condition=lambda: clock.now > begun + 0.45))) == 6


def test_the_rate_is_measured() -> None:
    clock = Clock()
    turns = throttle(clock, update_every=10)
    assert turns.rate is None
    for _ in range(21):
        next(turns)
    assert turns.rate == pytest.approx(10, rel=0.2)


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(MonitorError, match="more than 0"):
        Throttle(rate)
