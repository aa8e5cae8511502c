"""What an export swaps for the whole process is given back, whatever other threads export meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings

import pytest
from alipes.repository.export.noise import caught_noise

TIMEOUT_S = 30


@pytest.mark.parametrize("verbose", [False, True])
def test_exports_that_end_in_the_order_they_began_leave_nothing(verbose: bool) -> None:
    before = (sys.stdout, sys.stderr, warnings.showwarning)
    begun, entered, ended = threading.Event(), threading.Event(), threading.Event()

    def export_second() -> None:
        assert begun.wait(TIMEOUT_S)
        with caught_noise(verbose):
            entered.set()
            assert ended.wait(TIMEOUT_S)

    second = threading.Thread(target=export_second)
    second.start()
    with caught_noise(False):
        begun.set()
        beside = entered.wait(0.2)  # long enough for a thread that nothing holds back
    ended.set()
    second.join(TIMEOUT_S)
    assert (sys.stdout, sys.stderr, warnings.showwarning) == before
    assert not beside


def test_an_export_within_an_export_waits_for_nothing() -> None:
    before = sys.stdout
    with caught_noise(False), caught_noise(False):
        assert sys.stdout is not before
    assert sys.stdout is before


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_during_an_export_can_export() -> None:
    held, ended = threading.Event(), threading.Event()

    def export() -> None:
        with caught_noise(False):
            held.set()
            assert ended.wait(TIMEOUT_S)

    thread = threading.Thread(target=export)
    thread.start()
    assert held.wait(TIMEOUT_S)
    if not (child := os.fork()):
        signal.alarm(TIMEOUT_S)  # ends a child that waits for a thread which it does not have
        try:
            with caught_noise(False):
                os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    ended.set()
    thread.join(TIMEOUT_S)
    assert status == 0
