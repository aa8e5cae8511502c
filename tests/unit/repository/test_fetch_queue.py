"""Fetches side by side, of which some take long."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from alipes.repository.fetch_queue import FetchQueue
from support.waiting import TIMEOUT_S, until


@pytest.fixture
def queue() -> Iterator[FetchQueue]:
    """Two at once, slow after a twentieth of a second, six in all."""
    made = FetchQueue(at_once=2, slow_s=0.05, most=6)
    yield made
    made.close()


def test_fetches_that_take_long_hold_up_no_other(queue: FetchQueue) -> None:
    stuck, done = threading.Event(), threading.Semaphore(0)
    for _ in range(4):
        queue.submit(lambda: bool(stuck.wait(TIMEOUT_S)))
    for _ in range(20):
        queue.submit(done.release)
    assert all(done.acquire(timeout=TIMEOUT_S) for _ in range(20))
    stuck.set()


def test_no_more_run_side_by_side_than_may(queue: FetchQueue) -> None:
    lock, running, most = threading.Lock(), [0], [0]
    stuck = threading.Event()

    def fetch() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        stuck.wait(TIMEOUT_S)
        with lock:
            running[0] -= 1

    for _ in range(10):
        queue.submit(fetch)
    until(lambda: running[0] == 6, "slow ones make room")
    stuck.set()
    queue.wait(TIMEOUT_S)
    assert (running[0], most[0]) == (0, 6)


def test_a_wait_ends_with_the_fetches_or_once_none_ends(queue: FetchQueue) -> None:
    stuck, ended = threading.Event(), []
    queue.submit(lambda: ended.append(1))
    queue.wait(TIMEOUT_S)
    assert ended == [1]
    queue.submit(lambda: bool(stuck.wait(TIMEOUT_S)))
    queue.wait(0.05)
    assert not stuck.is_set()
    stuck.set()


def test_what_has_not_begun_is_dropped_by_a_stop(queue: FetchQueue) -> None:
    stuck, ended = threading.Event(), []
    begun = threading.Semaphore(0)

    def fetch() -> None:
        begun.release()
        stuck.wait(TIMEOUT_S)

    for _ in range(2):
        queue.submit(fetch)
    assert all(begun.acquire(timeout=TIMEOUT_S) for _ in range(2))
    queue.submit(lambda: ended.append(1))
    queue.stop()
    queue.submit(lambda: ended.append(2))
    queue.wait(TIMEOUT_S)
    stuck.set()
    queue.close()
    assert ended == []
