"""How many threads batches are run on: each test says how long executions take, and nothing here waits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.worker.frameworks.opened import OpenedModel, Opening
from alipes.worker.frameworks.thread_choice import ThreadChoice, run_of

ALL = 8
SMALL, LARGE = np.zeros((1, 4)), np.zeros((64, 4))


class Timed(OpenedModel):
    """A model whose executions take what a test says, in seconds, for one thread and for all.

    Attributes:
        delay: For how many seconds other programs hold up each execution.
    """

    def __init__(self, one: float, of_all: float, adapts: bool = True) -> None:
        self.seconds = {1: one, ALL: of_all}
        self.threads = 1
        self.used: list[int] = []
        self.now = self.worked = self.delay = 0.0
        self._adapts = adapts

    @property
    def adapts_threads(self) -> bool:
        return self._adapts

    def set_threads(self, count: int) -> None:
        self.threads = count

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        self.used.append(self.threads)
        seconds = self.seconds[self.threads] * inputs["x"].size / SMALL.size
        self.now += seconds + self.delay
        self.worked += seconds
        return {}


def choice_of(model: Timed) -> ThreadChoice:
    return ThreadChoice(model, ALL, lambda: model.now, lambda: model.worked)


def used(model: Timed, batch: np.ndarray, times: int, choice: ThreadChoice | None = None) -> list[int]:
    """The threads of each of several executions."""
    choice = choice or choice_of(model)
    for _ in range(times):
        choice.run({"x": batch})
    return model.used[-times:]


def test_small_batches_stay_on_one_thread_however_quick_several_are() -> None:
    assert set(used(Timed(0.0001, 0.00001), SMALL, 1000)) == {1}


def test_quick_executions_are_measured_now_and_then() -> None:
    model = Timed(0.0001, 0.00001)
    looks: list[float] = []

    def work() -> float:
        looks.append(model.worked)
        return model.worked

    choice = ThreadChoice(model, ALL, lambda: model.now, work)
    used(model, SMALL, 1600, choice)
    assert len(looks) == 2 * (2 + 100), "three at first"
    used(model, LARGE, 10, choice)
    assert len(looks) == 2 * (2 + 100 + 10), "each of a size that is not quick"


def test_long_executions_take_all_threads_where_these_are_quicker() -> None:
    threads = used(Timed(0.1, 0.02), SMALL, 1000)
    assert threads[:3] == [1, 1, 1]
    assert set(threads[3:]) == {ALL}


def test_a_hundredth_of_the_executions_tries_threads_that_are_slower() -> None:
    threads = used(Timed(0.1, 1.0), SMALL, 5000)
    assert 3 <= threads.count(ALL) <= 50


def test_each_size_of_a_batch_has_its_own_number() -> None:
    model = Timed(0.001, 0.0002)
    choice = choice_of(model)
    assert used(model, LARGE, 10, choice)[-1] == ALL
    assert set(used(model, SMALL, 10, choice)) == {1}
    assert used(model, LARGE, 1, choice) == [ALL]


def test_a_machine_that_becomes_busy_takes_executions_back_to_one_thread() -> None:
    model = Timed(0.1, 0.02)
    choice = choice_of(model)
    assert used(model, SMALL, 100, choice)[-1] == ALL
    model.seconds[ALL] = 2.0
    assert set(used(model, SMALL, 100, choice)[2:]) == {1}
    model.seconds[ALL] = 0.02
    assert set(used(model, SMALL, 2000, choice)[-1000:]) == {ALL}


def test_an_execution_that_others_hold_up_looks_no_longer_than_it_is() -> None:
    model = Timed(0.0001, 0.00001)
    model.delay = 0.02
    assert set(used(model, SMALL, 1000)) == {1}
    large = Timed(0.1, 0.02)
    large.delay = 0.09  # by the clock all threads need 0.11 s, and one 0.19
    threads = used(large, SMALL, 1000)
    assert 3 <= threads.count(ALL) <= 10
    large.delay = 0.0
    assert used(large, SMALL, 2000)[-1] == ALL


def test_one_execution_that_is_longer_decides_nothing() -> None:
    model = Timed(0.0001, 0.00001)
    choice = choice_of(model)
    for _ in range(50):
        used(model, SMALL, 2, choice)
        model.seconds[1] = 1.0
        used(model, SMALL, 1, choice)
        model.seconds[1] = 0.0001
    assert set(model.used) == {1}


@pytest.mark.parametrize(("by_operator", "fixed"), [(True, False), (False, True)])
def test_a_configured_number_of_threads_stays(by_operator: bool, fixed: bool) -> None:
    model = Timed(0.1, 1.0, adapts=not fixed)
    opening = Opening("m", Path("model.pt"), {}, adapts_threads=not by_operator)
    assert run_of(model, opening) == model.run


def test_what_is_not_measured_has_one_thread() -> None:
    model = Timed(0.1, 0.02)
    model.threads = ALL
    assert run_of(model, Opening("m", Path("model.pt"), {}, adapts_threads=True)) != model.run
    assert model.threads == 1
