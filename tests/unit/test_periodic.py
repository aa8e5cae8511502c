"""A function that is called again and again while a block runs."""

from __future__ import annotations

import threading

import pytest
from alipes.periodic import periodic

TIMEOUT_S = 30


def test_a_periodic_call_runs_on_a_thread_of_its_own_until_the_block_ends() -> None:
    threads, third = list[threading.Thread](), threading.Event()

    def call() -> bool:
        threads.append(threading.current_thread())
        if len(threads) == 3:
            third.set()
        return True

    with periodic(call, 0.001, "alipes-test-periodic"):
        assert third.wait(TIMEOUT_S)
    assert {thread.name for thread in threads} == {"alipes-test-periodic"}
    assert not threads[0].is_alive()


def test_a_periodic_call_that_says_so_is_the_last_one() -> None:
    calls, ended = list[int](), threading.Event()

    def call() -> bool:
        calls.append(len(calls))
        if len(calls) == 2:
            ended.set()
        return not ended.is_set()

    with periodic(call, 0.001, "alipes-test-last"):
        assert ended.wait(TIMEOUT_S)
        [thread] = [one for one in threading.enumerate() if one.name == "alipes-test-last"] or [None]
        if thread is not None:
            thread.join(TIMEOUT_S)
    assert calls == [0, 1]


def test_a_block_that_fails_ends_its_periodic_calls() -> None:
    with pytest.raises(KeyError), periodic(lambda: True, 0.001, "alipes-test-failed"):
        raise KeyError
    assert "alipes-test-failed" not in {thread.name for thread in threading.enumerate()}


def test_the_end_of_a_block_does_not_wait_for_the_period() -> None:
    with periodic(lambda: True, 1e6, "alipes-test-long"):
        pass
