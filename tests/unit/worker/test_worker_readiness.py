"""Checks of a model's `is_ready`, with a link that is two queues."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest
from alipes.worker.executor import Executor
from alipes.worker.readiness import Readiness
from support.waiting import TIMEOUT_S


class Link:
    """Asks what a test asks, and keeps what is said."""

    def __init__(self) -> None:
        self.questions: Queue[int | None] = Queue()
        self.answers: Queue[tuple[int, bool]] = Queue()
        self.lines: list[tuple[int, str, int, str]] = []

    def next_check(self, last: int) -> int | None:
        return self.questions.get()

    def checked(self, number: int, ready: bool) -> None:
        self.answers.put((number, ready))

    def log(self, level: int, file: str, line: int, text: str) -> None:
        self.lines.append((level, file, line, text))

    def ask(self, number: int = 1) -> bool:
        """One question and the answer to it."""
        self.questions.put(number)
        answered, ready = self.answers.get(timeout=TIMEOUT_S)
        assert answered == number
        return ready


@contextmanager
def checked(check: Any) -> Iterator[Link]:
    """A link to a model with this `is_ready`."""
    link = Link()
    executor = Executor(link, SimpleNamespace(), "m_0_0", decoupled=False)  # type: ignore[arg-type]
    readiness = Readiness.of(link, SimpleNamespace(is_ready=check), executor, "model.py")  # type: ignore[arg-type]
    assert readiness is not None
    readiness.start()
    try:
        yield link
    finally:
        link.questions.put(None)
        readiness.end()
        executor.finish()


def test_a_model_without_the_method_has_no_say() -> None:
    link: Any = Link()
    executor = Executor(link, object(), "m_0_0", decoupled=False)
    assert Readiness.of(link, object(), executor, "model.py") is None


def test_each_check_is_answered_with_its_number() -> None:
    says = iter([True, False, True])
    with checked(lambda: next(says)) as link:
        assert link.ask(1)
        assert not link.ask(2)
        assert link.ask(5)
    assert link.lines == []


def test_a_coroutine_runs_on_the_loop_of_the_model_s_others() -> None:
    async def where() -> bool:
        return threading.current_thread().name == "alipes-coroutines"

    with checked(where) as link:
        assert link.ask()


def test_a_coroutine_of_a_plain_function_runs_too() -> None:
    async def soon() -> bool:
        await asyncio.sleep(0)
        return True

    def check() -> object:
        return soon()

    with checked(check) as link:
        assert link.ask()


@pytest.mark.parametrize("found", [1, None, "yes"])
def test_what_is_no_truth_value_is_not_ready(found: object) -> None:
    with checked(lambda: found) as link:
        assert not link.ask()
    [(level, file, _, text)] = link.lines
    assert (level, file) == (1, "model.py")
    assert text == (f"the model is not ready: is_ready() must return a boolean value, found type '{type(found)}'.")


def test_a_reason_is_logged_once_and_again_after_it_was_gone() -> None:
    says: list[object] = [1, 1, True, 1]
    with checked(lambda: says.pop(0)) as link:
        assert [link.ask(number) for number in (1, 2, 3, 4)] == [False, False, True, False]
    assert len(link.lines) == 2


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_what_it_raises_is_reported_with_its_traceback(error: type[BaseException]) -> None:
    def check() -> bool:
        raise error("broken")

    with checked(check) as link:
        assert not link.ask(1)
        assert not link.ask(2)
    [(_, _, _, text)] = link.lines
    assert text.startswith(f"the model is not ready: is_ready() raised {error.__name__}: broken\n\nAt:\n")
