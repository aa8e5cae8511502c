"""The loader pool: at once across models, in order within one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest
from alipes.server.loader import LoaderPool

TIMEOUT_S = 30


def _broken() -> None:
    raise ZeroDivisionError


@pytest.fixture
def pool() -> Iterator[LoaderPool]:
    made = LoaderPool(2)
    yield made
    made.stop(TIMEOUT_S)


def test_jobs_of_one_model_keep_their_order(pool: LoaderPool) -> None:
    ran: list[int] = []
    done = threading.Event()
    for number in range(50):
        pool.submit("m", partial(ran.append, number))
    pool.submit("m", done.set)
    assert done.wait(TIMEOUT_S)
    assert ran == list(range(50))


def test_jobs_of_one_model_never_overlap(pool: LoaderPool) -> None:
    inside = threading.Semaphore(1)
    overlaps: list[bool] = []
    done = threading.Semaphore(0)

    def job() -> None:
        alone = inside.acquire(blocking=False)
        overlaps.append(not alone)
        if alone:
            inside.release()
        done.release()

    for _ in range(100):
        pool.submit("m", job)
    assert all(done.acquire(timeout=TIMEOUT_S) for _ in range(100))
    assert not any(overlaps)


def test_two_models_load_at_the_same_time(pool: LoaderPool) -> None:
    meeting = threading.Barrier(3)

    def job() -> None:
        meeting.wait(TIMEOUT_S)

    pool.submit("a", job)
    pool.submit("b", job)
    meeting.wait(TIMEOUT_S)  # breaks if the two jobs do not run side by side
    assert not meeting.broken


def test_no_more_models_load_at_once_than_threads(pool: LoaderPool) -> None:
    running = threading.Semaphore(0)
    go_on = threading.Event()

    def job() -> None:
        running.release()
        go_on.wait(TIMEOUT_S)

    for name in "abc":
        pool.submit(name, job)
    assert running.acquire(timeout=TIMEOUT_S)
    assert running.acquire(timeout=TIMEOUT_S)
    assert not running.acquire(blocking=False)
    go_on.set()
    assert running.acquire(timeout=TIMEOUT_S)


def test_unloads_wait_for_no_load_of_another_model(pool: LoaderPool) -> None:
    hang, done = threading.Event(), threading.Event()
    for name in "abc":
        pool.submit(name, lambda: hang.wait(TIMEOUT_S))
    pool.submit("d", done.set, unloads=True)
    assert done.wait(TIMEOUT_S)
    hang.set()


def test_loads_and_unloads_of_one_model_keep_their_order(pool: LoaderPool) -> None:
    ran: list[int] = []
    done = threading.Event()
    for number in range(50):
        pool.submit("m", partial(ran.append, number), unloads=number % 3 == 0)
    pool.submit("m", done.set)
    assert done.wait(TIMEOUT_S)
    assert ran == list(range(50))


def test_a_job_that_raises_does_not_stop_the_next(pool: LoaderPool) -> None:
    done = threading.Event()
    pool.submit("m", _broken)
    pool.submit("m", done.set)
    assert done.wait(TIMEOUT_S)


def test_a_stopped_pool_takes_no_job(pool: LoaderPool) -> None:
    assert pool.stop(TIMEOUT_S)
    assert not pool.submit("m", lambda: None)


def test_stopping_gives_up_on_a_job_that_hangs(pool: LoaderPool) -> None:
    hang = threading.Event()
    begun = threading.Event()

    def job() -> None:
        begun.set()
        hang.wait(TIMEOUT_S)

    pool.submit("m", job)
    assert begun.wait(TIMEOUT_S)
    assert not pool.stop(0.0)
    hang.set()
    assert pool.stop(TIMEOUT_S)
