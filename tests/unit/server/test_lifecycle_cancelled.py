"""Loads that end before their time: by an unload, or by the limit on their time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from alipes.config.schema import ModelConfig
from alipes.model_load import SUPERSEDED
from alipes.repository.layout import ModelFolder
from alipes.repository.repository import Repository
from alipes.server.control import Control
from alipes.server.index import Index
from alipes.server.lifecycle import Lifecycle
from alipes.server.loader import LoaderPool
from alipes.server.loads import LoadLimits
from alipes.server.override import Override
from alipes.server.planner import Planner
from alipes.server.steps import Steps
from support.data_plane import Control as Request
from support.data_plane import DataPlane
from support.lifecycle import failure_of, served, states
from support.waiting import until

Make = Callable[..., Lifecycle]
MakeModel = Callable[..., Path]
TIMEOUT_S = 30
# Long enough for a busy machine to come to what holds a load, and to load what nothing holds.
BRIEF = LoadLimits(timeout_s=1.0)
LATE = "the load took longer than the 1 s that --model-load-timeout-secs allows"
OUTDATED = f"load failed for model 'm': {SUPERSEDED}\n"


class Held:
    """Builds of a model that go on once they may."""

    def __init__(self, data_plane: DataPlane, model: str = "m") -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self._model = model
        data_plane.before_build = self.hold

    def hold(self, name: str, version: int) -> None:
        if name == self._model:
            self.begun.set()
            assert self.may_end.wait(TIMEOUT_S)


@pytest.fixture
def held(data_plane: DataPlane) -> Iterator[Held]:
    made = Held(data_plane)
    yield made
    made.may_end.set()


@pytest.fixture
def steps() -> Iterator[Steps]:
    """Steps that are left alone at once; all have ended when the test is over."""
    made = Steps(grace_s=0.0)
    yield made
    until(lambda: made.abandoned == 0)


@pytest.fixture
def make(repository: Path, data_plane: DataPlane, index: Index, planner: Planner, steps: Steps) -> Make:
    """Makes a lifecycle: ``make(slow_planner, limits)``."""

    def made(slow: Planner | None = None, limits: LoadLimits | None = None) -> Lifecycle:
        core = cast("Any", data_plane)
        return Lifecycle(core, Repository([repository]), slow or planner, index, limits, steps=steps)

    return made


@pytest.fixture
def lifecycle(make: Make, held: Held) -> Lifecycle:
    return make()


@pytest.fixture
def limited(make: Make, held: Held) -> Lifecycle:
    """A lifecycle whose loads may take a moment."""
    return make(limits=BRIEF)


@pytest.fixture
def pool() -> Iterator[LoaderPool]:
    made = LoaderPool(1)
    yield made
    made.stop(TIMEOUT_S)


@pytest.fixture
def control(data_plane: DataPlane, lifecycle: Lifecycle, pool: LoaderPool) -> Iterator[Control]:
    made = Control(data_plane, lifecycle, pool, allowed=True)  # type: ignore[arg-type]
    made.start()
    yield made
    assert made.stop(TIMEOUT_S)


def send(data_plane: DataPlane, *kinds: str, model: str = "m") -> list[Request]:
    """Sends requests one after the other without waiting for their answers."""
    requests = [Request(kind, model) for kind in kinds]
    for request in requests:
        data_plane.controls.put(request)
    return requests


def answer(request: Request) -> tuple[str | None, str]:
    return request.replies.get(timeout=TIMEOUT_S)


@pytest.mark.usefixtures("control")
def test_an_unload_ends_the_load_that_is_under_way(data_plane: DataPlane, model: MakeModel, held: Held) -> None:
    model("m")
    (load,) = send(data_plane, "load")
    assert held.begun.wait(TIMEOUT_S)
    (unload,) = send(data_plane, "unload")
    assert answer(load) == ("INVALID_ARG", OUTDATED)
    assert answer(unload) == (None, "")
    assert (served(data_plane), states(data_plane)) == ([], {"1": ("UNAVAILABLE", "unloaded")})
    held.may_end.set()
    until(lambda: data_plane.built)
    assert data_plane.built[0].released.wait(TIMEOUT_S), "what came too late is freed"
    assert served(data_plane) == []


@pytest.mark.usefixtures("control")
def test_an_unload_ends_the_loads_before_it_and_none_behind_it(
    data_plane: DataPlane, model: MakeModel, held: Held
) -> None:
    model("m")
    (first,) = send(data_plane, "load")
    assert held.begun.wait(TIMEOUT_S)
    waiting, unload, later = send(data_plane, "load", "unload", "load")
    assert answer(first) == answer(waiting) == ("INVALID_ARG", OUTDATED)
    assert answer(unload) == (None, "")
    held.may_end.set()
    assert answer(later) == (None, "")
    assert served(data_plane) == [1]


@pytest.mark.usefixtures("control")
def test_an_unload_leaves_the_loads_of_other_models_alone(data_plane: DataPlane, model: MakeModel, held: Held) -> None:
    model("m")
    (load,) = send(data_plane, "load")
    assert held.begun.wait(TIMEOUT_S)
    (unload,) = send(data_plane, "unload", model="n")
    held.may_end.set()
    assert (answer(load), answer(unload)) == ((None, ""), (None, ""))
    assert served(data_plane) == [1]


@pytest.mark.usefixtures("control")
def test_a_refused_request_is_not_remembered(data_plane: DataPlane, lifecycle: Lifecycle) -> None:
    for parameters in ('{"colour": "red"}', "{}"):
        request = Request("load", "absent", parameters)
        data_plane.controls.put(request)
        assert answer(request)[0] is not None
    until(lambda: not lifecycle._loads._known)


def test_a_load_that_takes_too_long_fails_and_gives_its_thread_back(
    limited: Lifecycle, data_plane: DataPlane, model: MakeModel, pool: LoaderPool, held: Held
) -> None:
    model("m")
    model("n")
    failures: list[tuple[str, str]] = []
    done = threading.Event()
    pool.submit("m", lambda: failures.append(failure_of(lambda: limited.load("m"))))
    pool.submit("n", lambda: (limited.load("n"), done.set()))
    assert done.wait(TIMEOUT_S), "the only thread of the pool was held up"
    text = f"load failed for model 'm': version 1 is at UNAVAILABLE state: Unavailable: {LATE};\n"
    assert failures == [("INVALID_ARG", text)]
    assert states(data_plane) == {"1": ("UNAVAILABLE", f"Unavailable: {LATE}")}
    assert (served(data_plane), served(data_plane, "n"), limited.abandoned) == ([], [1], 1)
    held.may_end.set()
    until(lambda: limited.abandoned == 0)
    assert [version.released.is_set() for version in data_plane.built if version.name == "m"] == [True]


def test_a_reload_that_takes_too_long_leaves_what_served(
    limited: Lifecycle, data_plane: DataPlane, model: MakeModel, held: Held
) -> None:
    held.may_end.set()
    folder = model("m")
    until(lambda: limited.try_load("m"))  # a busy machine may miss the limit
    held.may_end.clear()
    (folder / "1" / "more").write_text("x")
    assert LATE in failure_of(lambda: limited.load("m"))[1]
    assert (served(data_plane), states(data_plane)) == ([1], {"1": ("READY", "")})
    limited.unload("m")
    assert served(data_plane) == []


def test_no_further_attempt_is_made_once_the_time_is_up(make: Make, model: MakeModel, held: Held) -> None:
    model("m")
    retrying = make(limits=LoadLimits(1000, BRIEF.timeout_s))
    assert LATE in failure_of(lambda: retrying.load("m"))[1]


class _SlowPlanner(Planner):
    """Reads configurations once it may."""

    def __init__(self, planner: Planner, held: Held) -> None:
        self._planner = planner
        self._held = held

    def poll(self, folder: ModelFolder, override: str | None) -> ModelConfig:
        self._held.hold("m", 0)
        return self._planner.poll(folder, override)


@pytest.mark.parametrize("files", [{}, {"1/model.onnx": b"x"}], ids=["folder", "files"])
def test_a_configuration_that_cannot_be_read_in_time_is_an_error(
    make: Make, planner: Planner, data_plane: DataPlane, model: MakeModel, held: Held, files: dict[str, bytes]
) -> None:
    model("m")
    slow = make(_SlowPlanner(planner, held), BRIEF)
    override = Override("{}", files) if files else None
    assert failure_of(lambda: slow.load("m", override)) == ("INVALID_ARG", f"load failed for model 'm': {LATE}\n")
    assert not slow.try_load("m")
    assert [state for state, _ in states(data_plane).values()] == ["UNAVAILABLE"]
    slow.close()
