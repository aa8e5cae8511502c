"""Executions of a model, with a link that is a list."""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from typing import Any

import pytest
from alipes.worker.executor import Executor
from support.waiting import TIMEOUT_S


class Request:
    """Stands for a request; can be referred to weakly."""


class Link:
    """Executes prepared requests one after the other, as the real link does, and keeps what is answered."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Any]] = []
        self.failed = threading.Semaphore(0)
        self.held: list[int] = []
        self.seen: weakref.WeakSet[Request] = weakref.WeakSet()

    def serve(self, executor: Executor, batches: int) -> None:
        for _ in range(batches):
            requests: Any = [Request()]
            self.seen.add(requests[0])
            try:
                self.lines.append(("answer", executor.execute(requests)))
            except BaseException as error:
                assert error.__traceback__ is not None
                error.__traceback__ = error.__traceback__.tb_next  # the real link is no Python and has no frame
                self.lines.append(("fail", executor.describe(error)))
            del requests
            self.held.append(len(self.seen))

    def fail(self, requests: list[Request], message: str) -> None:
        self.lines.append(("fail", message))
        self.failed.release()


def run(model: Any, *, batches: int = 1, decoupled: bool = False) -> Link:
    link = Link()
    executor = Executor(link, model, "m_0_0", decoupled)  # type: ignore[arg-type]
    link.serve(executor, batches)
    executor.finish()
    return link


class Model:
    """Executes a function."""

    def __init__(self, execute: Any) -> None:
        self.execute = execute


def test_what_execute_returns_is_answered() -> None:
    assert run(Model(lambda requests: [1])).lines == [("answer", [1])]


def test_a_coroutine_is_waited_for() -> None:
    async def execute(requests: list[Request]) -> list[int]:
        await asyncio.sleep(0)
        return [2]

    assert run(Model(execute), batches=2).lines == [("answer", [2]), ("answer", [2])]


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(1), KeyboardInterrupt(), MemoryError()])
def test_what_execute_raises_fails_the_requests_and_not_the_worker(error: BaseException) -> None:
    calls: list[int] = []

    def execute(requests: list[Request]) -> list[int]:
        calls.append(1)
        if len(calls) == 1:
            raise error
        return [3]

    (what, text), second = run(Model(execute), batches=2).lines
    assert what == "fail"
    assert text.startswith(f"{type(error).__name__}: {error}\n\nAt:\n  {__file__}(")
    assert text.endswith("): execute\n")
    assert second == ("answer", [3])


def test_a_call_that_does_not_fit_fails_the_requests() -> None:
    def execute() -> None:
        pass

    ((what, text),) = run(Model(execute)).lines
    assert what == "fail"
    assert "takes 0 positional arguments but 1 was given" in text
    assert "At:" not in text


def test_nothing_of_a_request_is_held_after_its_execution() -> None:
    assert run(Model(lambda requests: []), batches=2).held == [0, 0]


def test_nothing_of_a_request_is_held_after_a_failure() -> None:
    def execute(requests: list[Request]) -> None:
        try:
            raise ValueError
        except ValueError as error:
            held = error
            raise RuntimeError from held

    assert run(Model(execute), batches=2).held == [0, 0]


def test_what_a_coroutine_lets_go_of_is_free_before_the_answer() -> None:
    references: list[int] = []

    async def execute(requests: list[Request]) -> list[int]:
        await asyncio.sleep(0)
        references.append(sys.getrefcount(requests[0]))
        return []

    def plain(requests: list[Request]) -> list[int]:
        references.append(sys.getrefcount(requests[0]))
        return []

    run(Model(execute))
    run(Model(plain))
    assert references[0] == references[1]


def test_a_decoupled_coroutine_goes_on_in_the_background() -> None:
    gate = threading.Event()

    async def execute(requests: list[Request]) -> None:
        await asyncio.get_running_loop().run_in_executor(None, gate.wait)
        raise ValueError("late")

    link = Link()
    executor = Executor(link, Model(execute), "m_0_0", True)  # type: ignore[arg-type]
    link.serve(executor, 2)
    assert link.lines == [("answer", None), ("answer", None)]
    gate.set()
    assert link.failed.acquire(timeout=TIMEOUT_S)
    assert link.failed.acquire(timeout=TIMEOUT_S)
    executor.finish()
    assert [text.partition("At:")[0] for _, text in link.lines[2:]] == ["ValueError: late\n\n"] * 2


def test_a_decoupled_coroutine_must_return_none() -> None:
    async def execute(requests: list[Request]) -> list[int]:
        return [1]

    link = run(Model(execute), decoupled=True)
    text = "Python model 'm_0_0' is using the decoupled mode and the execute function must return None."
    assert link.failed.acquire(timeout=TIMEOUT_S)
    assert ("fail", text) in link.lines


def test_finalize_may_use_the_loop_of_execute() -> None:
    class WithSession(Model):
        def __init__(self) -> None:
            self.closed = False

        async def execute(self, requests: list[Request]) -> list[int]:
            self.loop = asyncio.get_running_loop()
            return [1]

        async def close(self) -> None:
            self.closed = True

        def finalize(self) -> None:
            asyncio.run_coroutine_threadsafe(self.close(), self.loop).result(TIMEOUT_S)

    model = WithSession()
    run(model)
    assert model.closed


def test_what_finalize_raises_is_raised() -> None:
    class Clumsy(Model):
        def finalize(self) -> None:
            raise RuntimeError("cannot end")

    with pytest.raises(RuntimeError, match="cannot end"):
        run(Clumsy(lambda requests: []))
