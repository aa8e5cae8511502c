"""Steps of loads that may take for ever: how a load ends without them, and what becomes of what they bring."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest
from alipes.config.limits import MAX_ABANDONED_OF_MODEL, MAX_ABANDONED_STEPS
from alipes.errors import ModelLoadError
from alipes.model_load import Load, LoadCancelled
from alipes.server.steps import Steps
from alipes.types import ModelKey
from support.waiting import until

TIMEOUT_S = 30


class Hang:
    """A call that returns once it may."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.may_end.wait(TIMEOUT_S)
        return "late"


@pytest.fixture
def hang() -> Iterator[Hang]:
    made = Hang()
    yield made
    made.may_end.set()


@pytest.fixture
def steps() -> Iterator[Steps]:
    made = Steps(grace_s=0.0)
    yield made
    until(lambda: made.abandoned == 0)


def cancelling(load: Load, hang: Hang) -> threading.Thread:
    """Cancels a load once its step is under way."""
    thread = threading.Thread(target=lambda: (hang.begun.wait(TIMEOUT_S), load.cancel()))
    thread.start()
    return thread


def test_a_step_gives_what_its_call_gives(steps: Steps) -> None:
    assert steps.run(Load(), lambda: "made") == "made"


def test_a_step_raises_what_its_call_raises(steps: Steps) -> None:
    def broken() -> None:
        raise ZeroDivisionError("it broke")

    with pytest.raises(ZeroDivisionError, match="it broke"):
        steps.run(Load(), broken)


def test_a_load_that_is_cancelled_leaves_its_step_alone(steps: Steps, hang: Hang) -> None:
    load, dropped = Load(), []
    thread = cancelling(load, hang)
    with pytest.raises(LoadCancelled):
        steps.run(load, hang, dropped.append)
    assert (steps.abandoned, dropped) == (1, [])
    hang.may_end.set()
    until(lambda: steps.abandoned == 0)
    assert dropped == ["late"]
    thread.join()


def test_a_load_whose_time_is_up_leaves_its_step_alone(steps: Steps, hang: Hang) -> None:
    with pytest.raises(LoadCancelled, match=r"took longer than the 0\.01 s"):
        steps.run(Load(timeout_s=0.01), hang)
    assert steps.abandoned == 1


def test_a_step_that_is_ended_by_the_cancellation_is_waited_for(hang: Hang) -> None:
    patient, load, dropped = Steps(grace_s=TIMEOUT_S), Load(), []
    thread = cancelling(load, hang)
    with load.ending(hang.may_end.set), pytest.raises(LoadCancelled):
        patient.run(load, hang, dropped.append)
    assert (patient.abandoned, dropped) == (0, ["late"])
    thread.join()


def test_a_load_that_was_cancelled_begins_no_step(steps: Steps) -> None:
    load, began = Load(), []
    load.cancel()
    with pytest.raises(LoadCancelled):
        steps.run(load, lambda: began.append(1))
    assert began == []


def abandon(steps: Steps, model: str, hang: Hang) -> None:
    with pytest.raises(LoadCancelled):
        steps.run(Load(ModelKey(model), timeout_s=0.001), hang)


def test_a_model_whose_loads_hang_takes_no_thread_after_thread(steps: Steps, hang: Hang) -> None:
    for _ in range(MAX_ABANDONED_OF_MODEL):
        abandon(steps, "m", hang)
    with pytest.raises(ModelLoadError, match=rf"{MAX_ABANDONED_OF_MODEL} earlier loads of model 'm' were ended"):
        steps.run(Load(ModelKey("m")), lambda: "made")
    assert steps.run(Load(ModelKey("other")), lambda: "made") == "made"
    hang.may_end.set()
    until(lambda: steps.abandoned == 0)
    assert steps.run(Load(ModelKey("m")), lambda: "made") == "made"


def test_all_models_together_are_bounded_too(steps: Steps, hang: Hang) -> None:
    for number in range(MAX_ABANDONED_STEPS):
        abandon(steps, f"m{number}", hang)
    with pytest.raises(ModelLoadError, match=f"{MAX_ABANDONED_STEPS} earlier loads were ended"):
        steps.run(Load(ModelKey("m")), lambda: "made")
    hang.may_end.set()


def test_the_log_says_how_long_a_load_has_been_under_way(hang: Hang, server_log: pytest.LogCaptureFixture) -> None:
    steps, results = Steps(report_s=0.01), []
    load = Load(ModelKey("m"))
    thread = threading.Thread(target=lambda: results.append(steps.run(load, hang)))
    thread.start()
    until(lambda: server_log.text.count("'m' has been loading for 0 s") >= 2)
    hang.may_end.set()
    thread.join()
    assert results == ["late"]


class _Thing:
    pass


@pytest.mark.parametrize("cause", ["a result", "an error", "a late result"])
def test_a_step_leaves_nothing_behind(steps: Steps, hang: Hang, cause: str) -> None:
    gone = _run_with_thing(steps, hang, cause)
    gc.collect()
    until(lambda: gone() is None)


def _run_with_thing(steps: Steps, hang: Hang, cause: str) -> Callable[[], object]:
    thing = _Thing()

    def call() -> _Thing:
        if cause == "an error":
            raise ValueError(thing)
        if cause == "a late result":
            hang()
        return thing

    if cause == "a result":
        assert steps.run(Load(), call) is thing
    else:
        with pytest.raises((ValueError, LoadCancelled)) as raised:
            steps.run(Load(timeout_s=0.01 if cause == "a late result" else 0), call)
        raised.value.__traceback__ = None
        hang.may_end.set()
        until(lambda: steps.abandoned == 0)
    return weakref.ref(thing)
