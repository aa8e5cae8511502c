"""What is said of an exception: Triton's form, and what surrounds it."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alipes.worker.coroutines import Coroutines
from alipes.worker.failure import MOST_FRAMES, describe, forget
from alipes.worker.sources import import_file, import_package

RAISES = """
def inner(value):
    raise ValueError("went wrong")


def execute(value):
    inner(value)


def caught(value):
    try:
        inner(value)
    except ValueError as error:
        raise error


def exchanged(value):
    try:
        inner(value)
    except ValueError:
        return {}["absent"]


async def awaits(value):
    inner(value)


def quiet(value):
    raise SystemExit(3)


def deeper(value):
    return deeper(value)


def recurses(value):
    deeper(value)
"""


@pytest.fixture
def model(tmp_path: Path) -> Any:
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(RAISES)
    return import_file(folder / "model.py", import_package(folder))


def raised(work: Any) -> BaseException:
    with pytest.raises(BaseException) as caught:
        work()
    error = caught.value
    assert error.__traceback__ is not None
    # The frames of the test itself and of pytest, in place of the worker's own.
    error.__traceback__ = error.__traceback__.tb_next and error.__traceback__.tb_next.tb_next
    return error


def test_the_innermost_frame_comes_first(model: Any) -> None:
    file = model.__file__
    assert describe(raised(lambda: model.execute(1))) == (
        f"ValueError: went wrong\n\nAt:\n  {file}(3): inner\n  {file}(7): execute\n"
    )


def test_a_function_that_raises_again_is_named_once(model: Any) -> None:
    file = model.__file__
    assert describe(raised(lambda: model.caught(1))) == (
        f"ValueError: went wrong\n\nAt:\n  {file}(3): inner\n  {file}(14): caught\n"
    )


def test_endless_recursion_is_shown_from_both_ends(model: Any) -> None:
    text = describe(raised(lambda: model.recurses(1)))
    lines = text.splitlines()
    assert lines[0].startswith("RecursionError: maximum recursion depth exceeded")
    assert len(lines) == 3 + MOST_FRAMES + 1
    assert re.fullmatch(r"  \(\d+ more\)", lines[3 + MOST_FRAMES // 2])
    assert lines[-1] == f"  {model.__file__}(37): recurses"


def test_the_last_exception_counts(model: Any) -> None:
    assert describe(raised(lambda: model.exchanged(1))) == (
        f"KeyError: 'absent'\n\nAt:\n  {model.__file__}(21): exchanged\n"
    )


def test_exceptions_that_end_programs_are_described_too(model: Any) -> None:
    assert describe(raised(lambda: model.quiet(1))) == f"SystemExit: 3\n\nAt:\n  {model.__file__}(29): quiet\n"


def test_the_event_loop_and_the_worker_are_no_part_of_the_way(model: Any) -> None:
    coroutines = Coroutines()
    try:
        error = raised(lambda: coroutines.wait(model.awaits(1)))
    finally:
        coroutines.stop()
    file = model.__file__
    assert describe(error) == f"ValueError: went wrong\n\nAt:\n  {file}(3): inner\n  {file}(25): awaits\n"


def test_the_way_leads_through_threads(model: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        error = raised(lambda: pool.submit(model.execute, 1).result())
    text = describe(error)
    assert text.startswith(
        f"ValueError: went wrong\n\nAt:\n  {model.__file__}(3): inner\n  {model.__file__}(7): execute\n"
    )


def test_an_exception_without_a_way_is_its_type_and_message() -> None:
    assert describe(TypeError("execute() takes 1 positional argument but 2 were given")) == (
        "TypeError: execute() takes 1 positional argument but 2 were given"
    )


def test_a_message_that_cannot_be_shown_is_no_failure() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe(Broken()) == "Broken: <its message cannot be shown: RuntimeError>"


def test_letters_of_all_kinds_survive() -> None:
    assert describe(RuntimeError("snö ☃ failure")) == "RuntimeError: snö ☃ failure"


def test_forgetting_frees_what_frames_hold_without_the_garbage_collector() -> None:
    class View:
        pass

    views: list[weakref.ref[View]] = []

    def execute() -> None:
        view = View()
        views.append(weakref.ref(view))
        try:
            raise ValueError
        except ValueError as error:
            held = error  # the frame holds the exception that holds the frame
            raise RuntimeError from held

    gc.disable()
    try:
        try:
            execute()
        except RuntimeError as error:
            forget(error)
        assert views[0]() is None
    finally:
        gc.enable()


def test_a_cancelled_coroutine_is_described() -> None:
    async def execute() -> None:
        raise asyncio.CancelledError

    coroutines = Coroutines()
    with pytest.raises(asyncio.CancelledError):
        coroutines.wait(execute())
    coroutines.stop()
