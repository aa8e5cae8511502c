"""Signals that end the program, held back for a while."""

from __future__ import annotations

import signal
import threading

import pytest
from alipes.quickstart.signals import held_back


def test_a_signal_has_its_effect_behind_the_block() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt):
        with held_back():
            signal.raise_signal(signal.SIGINT)
            done.append("inside")
        done.append("behind")
    assert done == ["inside"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_and_no_signal_leave_the_handlers_as_they_were() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with pytest.raises(ValueError, match="it broke"), held_back():
        raise ValueError("it broke")
    with held_back():
        pass
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_other_threads_are_left_alone() -> None:
    seen = []

    def look() -> None:
        with held_back():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
