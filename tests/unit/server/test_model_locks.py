"""Locks of models: one after the other for one model, side by side for different ones."""

from __future__ import annotations

import threading

import pytest
from alipes.server.model_locks import ModelLocks
from alipes.types import ModelKey

TIMEOUT_S = 30


def test_different_models_never_wait_for_each_other() -> None:
    locks = ModelLocks()
    # More than any table of locks that is chosen by a hash would have.
    together = threading.Barrier(300)

    def hold(number: int) -> None:
        with locks.of(ModelKey(f"m{number}")):
            together.wait(TIMEOUT_S)

    threads = [threading.Thread(target=hold, args=(number,)) for number in range(together.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not together.broken
    assert len(locks) == 0


def test_threads_with_one_model_come_one_after_the_other() -> None:
    locks, inside, most = ModelLocks(), 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(100):
            with locks.of(ModelKey("m")):
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
    locks = ModelLocks()
    with pytest.raises(ValueError, match="it broke"), locks.of(ModelKey("m")):
        raise ValueError("it broke")
    with locks.of(ModelKey("m")):
        assert len(locks) == 1
    assert len(locks) == 0
