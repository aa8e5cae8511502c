"""A list of models, followed: what it brings is loaded at once, and each folder is looked at once for it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.repository.model_list import ModelList
from alipes.repository.repository import Repository
from alipes.repository.stores import opened_list
from alipes.server.index import Index
from alipes.server.lifecycle import Lifecycle
from alipes.server.loader import LoaderPool
from alipes.server.planner import Planner
from alipes.server.watcher import Watcher
from support.data_plane import DataPlane
from support.folders import make_model
from support.waiting import TIMEOUT_S, until


class Followed:
    """A list, what follows it, and the models of its store."""

    def __init__(self, folder: Path, data_plane: DataPlane, index: Index, planner: Planner) -> None:
        self.file = folder / "models.json"
        self.store = folder / "store"
        self.store.mkdir()
        self._time = 1
        self.models: ModelList = opened_list(str(self.file))
        self.lifecycle = Lifecycle(data_plane, Repository([], stores=[self.models]), planner, index)  # type: ignore[arg-type]
        self.pool = LoaderPool(2)
        self.watcher = Watcher(self.lifecycle, self.pool, interval_s=3600.0)

    def list(self, **addresses: str) -> None:
        """Names models, each by the folder that it lies in."""
        entries = [
            {"modelName": name, "modelSpec": {"storageUri": str(self.store / address)}}
            for name, address in addresses.items()
        ]
        self.file.write_text(json.dumps(entries))
        self._time += 1
        os.utime(self.file, (self._time, self._time))

    def start(self) -> None:
        self.lifecycle.fetch()
        self.watcher.take_as_known()

    def follow_until(self, fact: Callable[[], bool], what: str) -> None:
        def look() -> bool:
            self.watcher.follow()
            return fact()

        until(look, what)


@pytest.fixture
def followed(tmp_path: Path, data_plane: DataPlane, index: Index, planner: Planner) -> Iterator[Followed]:
    made = Followed(tmp_path, data_plane, index, planner)
    yield made
    assert made.pool.stop(TIMEOUT_S)
    made.lifecycle.close()


def served(data_plane: DataPlane) -> list[str]:
    return sorted(name for name, versions in data_plane.published.items() if versions)


def test_what_a_list_brings_is_loaded_without_a_pause(followed: Followed, data_plane: DataPlane) -> None:
    for name in "mno":
        make_model(followed.store, name, (1,))
    followed.list()
    followed.start()
    followed.watcher.follow()
    assert data_plane.history == []
    followed.list(m="m", n="n")
    followed.follow_until(lambda: served(data_plane) == ["m", "n"], "both serve")
    followed.list(n="n", o="o")
    followed.follow_until(lambda: served(data_plane) == ["n", "o"], "one went, one came")
    assert data_plane.history.count("build n 1") == 1


def test_a_model_that_lies_elsewhere_now_is_loaded_again(followed: Followed, data_plane: DataPlane) -> None:
    for name in ("first", "second"):
        make_model(followed.store, name, (1,))
    followed.list(m="first")
    followed.start()
    followed.pool.submit("m", lambda: followed.lifecycle.try_load("m"))
    followed.follow_until(lambda: served(data_plane) == ["m"], "it serves")
    followed.list(m="second")
    followed.follow_until(lambda: data_plane.history.count("build m 1") == 2, "the other is loaded")
    assert "publish m []" not in data_plane.history


def test_a_model_that_loads_slowly_holds_up_no_other(followed: Followed, data_plane: DataPlane) -> None:
    goes_on = threading.Event()
    data_plane.before_build = lambda name, version: name == "slow" and goes_on.wait(TIMEOUT_S)
    names = ["slow", *"abc"]
    for name in names:
        make_model(followed.store, name, (1,))
    followed.list()
    followed.start()
    followed.list(**dict(zip(names, names, strict=True)))
    followed.follow_until(lambda: served(data_plane) == ["a", "b", "c"], "the others serve")
    goes_on.set()
    followed.follow_until(lambda: served(data_plane) == sorted(names), "so does that one")


def test_the_thread_follows_a_list_between_polls(followed: Followed, data_plane: DataPlane) -> None:
    make_model(followed.store, "m", (1,))
    followed.list()
    followed.start()
    followed.watcher.start()
    followed.list(m="m")
    until(lambda: served(data_plane) == ["m"], "it is loaded")
    assert followed.watcher.stop(TIMEOUT_S)
