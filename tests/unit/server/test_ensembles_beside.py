"""Ensembles beside each other: loads share no lock but that of the model that they load, and miss no change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.model_load import SUPERSEDED
from alipes.server.failures import LoadFailed
from alipes.server.lifecycle import Lifecycle
from alipes.types import ModelKey
from support.data_plane import DataPlane
from support.ensembles import as_model, ensemble, serving
from support.folders import CONFIG, touch
from support.waiting import until

MakeModel = Callable[..., Path]
TIMEOUT_S = 30
DECOUPLED = "model_transaction_policy { decoupled: true }"


class Held:
    """Builds of some models that go on once they may."""

    def __init__(self, data_plane: DataPlane) -> None:
        self.models: dict[str, threading.Event] = {}
        self.begun: set[str] = set()
        data_plane.before_build = self._hold

    def hold(self, *names: str) -> None:
        self.models |= {name: threading.Event() for name in names}

    def release(self) -> None:
        for event in self.models.values():
            event.set()

    def _hold(self, name: str, version: int) -> None:
        if name in self.models:
            self.begun.add(name)
            assert self.models[name].wait(TIMEOUT_S)


@pytest.fixture
def held(data_plane: DataPlane) -> Iterator[Held]:
    made = Held(data_plane)
    yield made
    made.release()


class Beside:
    """A load on a thread of its own, and how it ended."""

    def __init__(self, load: Callable[[], object]) -> None:
        self.failure = ""
        self._load = load
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._load()
        except LoadFailed as failure:
            self.failure = str(failure)

    def end(self) -> str:
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive(), "it waits for ever"
        return self.failure


def test_a_slow_ensemble_holds_up_no_other(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, held: Held
) -> None:
    for name, config in {"slow": ensemble("m"), "e": ensemble("n"), "m": CONFIG, "n": CONFIG}.items():
        model(name, config=config)
    held.hold("m")
    slow = Beside(lambda: lifecycle.load("slow"))
    until(lambda: "m" in held.begun)
    assert Beside(lambda: lifecycle.load("e")).end() == ""
    assert Beside(lambda: lifecycle.unload("n")).end() == ""
    assert Beside(lambda: lifecycle.load("n")).end() == ""
    assert serving(data_plane) == {"e", "n"}
    held.release()
    assert slow.end() == ""
    assert serving(data_plane) == {"e", "m", "n", "slow"}


def test_ensembles_that_share_a_model_load_it_once(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, held: Held
) -> None:
    model("m")
    names = [f"e{number}" for number in range(8)]
    for name in names:
        model(name, config=ensemble("m"))
    held.hold("m")
    loads = [Beside(lambda name=name: lifecycle.load(name)) for name in names]  # type: ignore[misc]
    until(lambda: "m" in held.begun)
    held.release()
    assert [load.end() for load in loads] == [""] * len(names)
    assert serving(data_plane) == {"m", *names}
    assert data_plane.history.count("build m 1") == 1


def test_a_circle_that_is_loaded_from_every_side_is_refused(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    names = ["a", "b", "c"]
    for name, following in zip(names, [*names[1:], names[0]], strict=True):
        model(name, config=as_model(ensemble(following)))
    loads = [Beside(lambda name=name: lifecycle.load(name)) for name in names * 4]  # type: ignore[misc]
    assert all("circular dependency between ensembles: " in load.end() for load in loads)
    assert serving(data_plane) == set()


def test_a_circle_that_a_change_would_close_is_refused(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    inner = model("inner", config=as_model(ensemble("m")))
    model("outer", config=as_model(ensemble("inner")))
    model("m")
    lifecycle.load("outer")
    config = (inner / "config.pbtxt").read_text()
    (inner / "config.pbtxt").write_text(config.replace('model_name: "m"', 'model_name: "outer"'))
    touch(inner / "config.pbtxt")
    assert not lifecycle.try_load("inner")  # as the watcher asks, which leaves `outer` as it serves
    assert "circular dependency" in _failure(lambda: lifecycle.load("inner"))
    assert serving(data_plane) == {"inner", "m", "outer"}


def _failure(call: Callable[[], object]) -> str:
    with pytest.raises(LoadFailed) as failure:
        call()
    return str(failure.value)


def test_a_model_that_changes_while_its_ensemble_loads_is_seen(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, held: Held
) -> None:
    model("e", config=ensemble("m", "z"))
    folder = model("m")
    model("z")
    held.hold("z")
    load = Beside(lambda: lifecycle.load("e"))
    until(lambda: "z" in held.begun)
    (folder / "config.pbtxt").write_text(CONFIG + DECOUPLED)
    touch(folder / "config.pbtxt")
    lifecycle.load("m")
    held.release()
    assert load.end() == ""
    (version,) = data_plane.published["e"]
    assert version.spec["decoupled"] is True


def test_an_ensemble_that_missed_a_model_comes_with_it(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, held: Held
) -> None:
    model("e", config=ensemble("m", "z"))
    model("z")
    held.hold("z")
    load = Beside(lambda: lifecycle.load("e"))  # looks for `m` first
    until(lambda: "z" in held.begun)
    model("m")
    lifecycle.load("m")
    held.release()
    assert load.end().endswith("contains models that are not available or ambiguous: m\n")
    assert serving(data_plane) == {"e", "m", "z"}


@pytest.mark.parametrize("unloaded", ["e", "m"])
def test_an_unload_ends_what_an_ensemble_loads(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, held: Held, unloaded: str
) -> None:
    model("e", config=ensemble("m"))
    model("m")
    held.hold("m")
    load = Beside(lambda: lifecycle.load("e"))
    until(lambda: "m" in held.begun)
    ended = Beside(lambda: (lifecycle.supersede(ModelKey(unloaded)), lifecycle.unload(unloaded)))
    held.release()
    assert ended.end() == ""
    failure = load.end()
    assert failure.startswith("load failed for model 'e': ")
    assert failure.endswith(f"{SUPERSEDED}\n")
    assert serving(data_plane) == set()


def test_models_that_many_ensembles_share_are_looked_at_once(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    depth = 20  # two ways at each level are a million ways in all
    model("left0")
    model("right0")
    for level in range(1, depth):
        for side in ("left", "right"):
            below = (f"left{level - 1}", f"right{level - 1}")
            model(f"{side}{level}", config=as_model(ensemble(*below)))
    lifecycle.load(f"left{depth - 1}")
    assert len(serving(data_plane)) == 2 * depth - 1
    built = data_plane.history.count("publish left5 [1]")
    lifecycle.unload("left0")
    assert serving(data_plane) == {"right0"}
    lifecycle.load("left0")
    assert len(serving(data_plane)) == 2 * depth - 1
    assert built == 1
