"""Locks by key: one after the other for one key, side by side for different ones."""

from __future__ import annotations

import threading

import pytest
from alipes.model_load import Load, LoadCancelled
from alipes.repository.keyed_locks import KeyedLocks

TIMEOUT_S = 30


def test_different_keys_never_wait_for_each_other() -> None:
    locks = KeyedLocks[str]()
    # More than any table of locks that is chosen by a hash would have.
    together = threading.Barrier(300)

    def hold(number: int) -> None:
        with locks.of(f"m{number}"):
            together.wait(TIMEOUT_S)

    threads = [threading.Thread(target=hold, args=(number,)) for number in range(together.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not together.broken
    assert len(locks) == 0


def test_threads_with_one_key_come_one_after_the_other() -> None:
    locks, inside, most = KeyedLocks[str](), 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(100):
            with locks.of("m"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, inside, len(locks)) == (1, 0, 0)


def test_a_lock_is_released_by_an_error() -> None:
    locks = KeyedLocks[str]()
    with pytest.raises(ValueError, match="it broke"), locks.of("m"):
        raise ValueError("it broke")
    with locks.of("m"):
        assert len(locks) == 1
    assert len(locks) == 0


def test_a_load_that_is_cancelled_waits_no_longer() -> None:
    locks, load, ended = KeyedLocks[str](), Load(), threading.Event()

    def wait() -> None:
        with pytest.raises(LoadCancelled), locks.of("m", load):
            raise AssertionError("another thread holds it")
        ended.set()

    with locks.of("m"):
        thread = threading.Thread(target=wait)
        thread.start()
        load.cancel()
        assert ended.wait(TIMEOUT_S)
    thread.join()
    with locks.of("m"):
        assert len(locks) == 1
