"""The event loop of a model."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from alipes.worker.coroutines import Coroutines
from support.waiting import TIMEOUT_S


@pytest.fixture
def coroutines() -> Iterator[Coroutines]:
    made = Coroutines()
    yield made
    made.stop()


async def thread() -> threading.Thread:
    return threading.current_thread()


def test_a_coroutine_runs_on_the_thread_that_waits(coroutines: Coroutines) -> None:
    assert coroutines.wait(thread()) is threading.current_thread()


def test_all_coroutines_have_the_same_loop(coroutines: Coroutines) -> None:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert coroutines.wait(loop()) is coroutines.wait(loop())


def test_a_task_that_is_left_behind_goes_on(coroutines: Coroutines) -> None:
    done = threading.Event()

    async def execute() -> None:
        async def later() -> None:
            await asyncio.sleep(0)
            done.set()

        execute.task = asyncio.create_task(later())  # type: ignore[attr-defined]

    coroutines.wait(execute())
    assert done.wait(TIMEOUT_S)
    assert coroutines.wait(thread()) is not threading.current_thread()


def test_finished_tasks_do_not_move_the_loop(coroutines: Coroutines) -> None:
    async def execute() -> None:
        await asyncio.create_task(asyncio.sleep(0))

    coroutines.wait(execute())
    assert coroutines.wait(thread()) is threading.current_thread()


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
@pytest.mark.parametrize("background", [False, True])
def test_whatever_a_coroutine_raises_reaches_the_one_that_waits(
    coroutines: Coroutines, error: BaseException, background: bool
) -> None:
    async def execute() -> None:
        raise error

    if background:
        coroutines.go_on()
    with pytest.raises(type(error)):
        coroutines.wait(execute())
    assert coroutines.wait(thread())


def outcome_of(coroutines: Coroutines, coroutine: Any) -> tuple[Any, BaseException | None]:
    finished = threading.Event()
    outcome: list[tuple[Any, BaseException | None]] = []

    def end(returned: Any, error: BaseException | None) -> None:
        outcome.append((returned, error))
        finished.set()

    coroutines.start(coroutine, end)
    assert finished.wait(TIMEOUT_S)
    return outcome[0]


def test_a_started_coroutine_tells_what_it_returned(coroutines: Coroutines) -> None:
    returned, error = outcome_of(coroutines, thread())
    assert error is None
    assert returned is not threading.current_thread()


def test_a_started_coroutine_tells_what_it_raised(coroutines: Coroutines) -> None:
    async def execute() -> None:
        raise SystemExit(1)

    assert isinstance(outcome_of(coroutines, execute())[1], SystemExit)
    assert outcome_of(coroutines, thread())[1] is None


def test_stray_tasks_that_end_programs_do_not_end_the_loop(
    coroutines: Coroutines, caplog: pytest.LogCaptureFixture
) -> None:
    async def stray() -> None:
        raise SystemExit(1)

    tasks = []

    async def execute() -> None:
        tasks.append(asyncio.create_task(stray()))

    assert outcome_of(coroutines, execute())[1] is None
    assert outcome_of(coroutines, thread())[1] is None
    # Here rather than in the middle of another test.
    tasks.clear()
    gc.collect()
    assert "Task exception was never retrieved" in caplog.text


def test_stopping_cancels_what_still_runs() -> None:
    coroutines = Coroutines()
    started, ended = threading.Event(), threading.Event()
    outcome: list[BaseException | None] = []

    async def execute() -> None:
        started.set()
        await asyncio.sleep(3600)

    def end(_returned: Any, error: BaseException | None) -> None:
        outcome.append(error)
        ended.set()

    coroutines.start(execute(), end)
    assert started.wait(TIMEOUT_S)
    coroutines.stop()
    assert ended.wait(TIMEOUT_S)
    assert isinstance(outcome[0], asyncio.CancelledError)
