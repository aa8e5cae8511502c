"""Signals and events arrive as values, in the main thread."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from alipes.server.signals import Event, Wakeup

TIMEOUT_S = 30


def test_a_signal_wakes_the_main_thread() -> None:
    with Wakeup() as wakeup:
        os.kill(os.getpid(), signal.SIGTERM)
        assert wakeup.wait(TIMEOUT_S) == (signal.SIGTERM,)


def test_an_event_of_another_thread_wakes_the_main_thread() -> None:
    with Wakeup() as wakeup:
        thread = threading.Thread(target=wakeup.notify, args=(Event.STOPPED,))
        thread.start()
        assert wakeup.wait(TIMEOUT_S) == (Event.STOPPED,)
        thread.join()


def test_events_before_the_wait_stay_in_order() -> None:
    with Wakeup() as wakeup:
        wakeup.notify(Event.STARTED)
        os.kill(os.getpid(), signal.SIGINT)
        wakeup.notify(Event.STOPPED)
        assert wakeup.wait(TIMEOUT_S) == (Event.STARTED, signal.SIGINT, Event.STOPPED)


def test_a_signal_to_reload_comes_as_what_it_is() -> None:
    with Wakeup() as wakeup:
        os.kill(os.getpid(), signal.SIGHUP)
        assert wakeup.wait(TIMEOUT_S) == (signal.SIGHUP,)


@pytest.mark.parametrize(
    ("before", "after", "handler", "meant"),
    [
        (True, True, signal.SIG_DFL, signal.SIGHUP),
        (True, False, signal.SIG_DFL, signal.SIGTERM),
        (True, False, signal.SIG_IGN, signal.SIGHUP),  # as under nohup
        (False, False, signal.SIG_DFL, signal.SIGHUP),
    ],
)
def test_the_end_of_the_terminal_is_a_signal_to_stop(
    monkeypatch: pytest.MonkeyPatch, before: bool, after: bool, handler: signal.Handlers, meant: signal.Signals
) -> None:
    old = signal.signal(signal.SIGHUP, handler)
    try:
        monkeypatch.setattr("alipes.server.signals.has_terminal", lambda: before)
        with Wakeup() as wakeup:
            monkeypatch.setattr("alipes.server.signals.has_terminal", lambda: after)
            os.kill(os.getpid(), signal.SIGHUP)
            assert wakeup.wait(TIMEOUT_S) == (meant,)
    finally:
        signal.signal(signal.SIGHUP, old)


def test_other_signals_keep_their_handlers_and_do_not_end_the_wait() -> None:
    seen: list[int] = []
    old = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        with Wakeup() as wakeup:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert wakeup.wait(0.0) == ()
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert seen == [signal.SIGUSR1]


def test_the_wait_ends_when_the_time_is_up() -> None:
    with Wakeup() as wakeup:
        assert wakeup.wait(0.0) == ()


def test_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Wakeup():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
