"""What is loaded and unloaded as the repositories change."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.repository.repository import Repository
from alipes.server.index import Index
from alipes.server.lifecycle import Lifecycle
from alipes.server.loader import LoaderPool
from alipes.server.planner import Planner
from alipes.server.watcher import Watcher
from alipes.types import IndexEntry, ModelState
from support.data_plane import DataPlane
from support.folders import CONFIG, make_model, touch

MakeModel = Callable[..., Path]
TIMEOUT_S = 30


@pytest.fixture
def pool() -> Iterator[LoaderPool]:
    made = LoaderPool(2)
    yield made
    assert made.stop(TIMEOUT_S)


@pytest.fixture
def watcher(lifecycle: Lifecycle, pool: LoaderPool) -> Watcher:
    return Watcher(lifecycle, pool, interval_s=3600.0)


def done(pool: LoaderPool, *models: str) -> None:
    """Returns once all jobs of these models have ended."""
    for model in models:
        ended = threading.Event()
        assert pool.submit(model, ended.set)
        assert ended.wait(TIMEOUT_S)


def empty(folder: Path) -> None:
    """Takes away all that a model's folder holds."""
    shutil.rmtree(folder / "1")
    (folder / "config.pbtxt").unlink()


def look(watcher: Watcher, pool: LoaderPool, times: int = 2) -> None:
    """Looks until changes count as settled."""
    for _ in range(times):
        watcher.poll()
    done(pool, "m", "n")


def test_what_was_there_at_the_start_is_left_to_the_start(
    watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m")
    watcher.take_as_known()
    look(watcher, pool)
    assert data_plane.history == []


def test_a_new_model_is_loaded_once_it_keeps_still(
    watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel
) -> None:
    watcher.take_as_known()
    folder = model("m")
    assert watcher.poll()
    (folder / "1" / "more").write_bytes(b"is still being copied")
    assert watcher.poll()
    assert data_plane.history == []
    assert not watcher.poll()
    look(watcher, pool)
    assert data_plane.history == ["build m 1", "publish m [1]"]


def test_a_change_is_loaded_once(watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel) -> None:
    folder = model("m")
    look(watcher, pool)
    touch(folder / "1")
    look(watcher, pool, times=5)
    assert data_plane.history == ["build m 1", "publish m [1]"] * 2


def test_a_reverted_change_is_none(watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel) -> None:
    folder = model("m")
    look(watcher, pool)
    before = (folder / "1" / "model.onnx").stat().st_mtime_ns
    touch(folder / "1" / "model.onnx")
    assert watcher.poll()
    os.utime(folder / "1" / "model.onnx", ns=(before, before))
    assert not watcher.poll()
    look(watcher, pool)
    assert data_plane.history == ["build m 1", "publish m [1]"]


def test_a_folder_that_comes_and_goes_is_not_waited_for(watcher: Watcher, model: MakeModel) -> None:
    folder = model("m")
    assert watcher.poll()
    shutil.rmtree(folder)
    assert not watcher.poll()


def test_a_model_whose_folder_is_gone_is_unloaded_after_a_second_look(
    watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel, index: Index
) -> None:
    folder = model("m")
    look(watcher, pool)
    shutil.rmtree(folder)
    watcher.poll()
    done(pool, "m")
    assert len(data_plane.published["m"]) == 1
    watcher.poll()
    done(pool, "m")
    assert data_plane.published["m"] == []
    assert index.entries() == []
    assert index.ready()


def test_a_name_that_comes_twice_is_served_from_neither(
    tmp_path: Path, repository: Path, pool: LoaderPool, data_plane: DataPlane, index: Index, planner: Planner
) -> None:
    second = tmp_path / "second"
    second.mkdir()
    both = Lifecycle(data_plane, Repository([repository, second]), planner, index)  # type: ignore[arg-type]
    watcher = Watcher(both, pool, interval_s=3600.0)
    make_model(repository, "m", (1,))
    make_model(repository, "n", (1,))
    look(watcher, pool)
    make_model(second, "m", (2,))
    assert watcher.poll(), "a model may be moved from one repository to the other in two steps"
    assert len(data_plane.published["m"]) == 1
    look(watcher, pool)
    assert data_plane.published["m"] == []
    assert len(data_plane.published["n"]) == 1
    reason = "model appears in two or more repositories"
    assert index.entries()[0] == IndexEntry("m", "", ModelState.UNAVAILABLE, reason)
    assert index.ready(), "as after any unload"
    shutil.rmtree(repository / "m")
    look(watcher, pool)
    assert [version.version for version in data_plane.published["m"]] == [2]


def test_with_namespaces_a_name_that_comes_a_second_time_is_loaded_too(
    tmp_path: Path, repository: Path, pool: LoaderPool, data_plane: DataPlane, index: Index, planner: Planner
) -> None:
    second = tmp_path / "second"
    second.mkdir()
    paths = Repository([repository, second], namespacing=True)
    watcher = Watcher(Lifecycle(data_plane, paths, planner, index), pool, interval_s=3600.0)  # type: ignore[arg-type]
    make_model(repository, "m", (1,))
    look(watcher, pool)
    make_model(second, "m", (2,))
    look(watcher, pool)
    served = {space: [version.version for version in found] for (_, space), found in data_plane.spaces.items()}
    assert served == {str(repository): [1], str(second): [2]}


def test_a_replaced_folder_is_loaded_again_without_an_unload(
    watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel, tmp_path: Path
) -> None:
    folder = model("m")
    look(watcher, pool)
    folder.rename(tmp_path / "old")
    watcher.poll()
    model("m", 2)
    look(watcher, pool)
    assert data_plane.history == ["build m 1", "publish m [1]", "build m 2", "publish m [2]"]


def test_a_broken_model_is_listed_and_tried_again_when_it_changes(
    watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel, index: Index
) -> None:
    folder = model("m", config="nonsense {")
    look(watcher, pool, times=4)
    (entry,) = index.entries()
    assert entry.state is ModelState.UNAVAILABLE
    (folder / "config.pbtxt").write_text(CONFIG)
    look(watcher, pool)
    assert index.entries() == [IndexEntry("m", "1", ModelState.READY)]


@pytest.mark.parametrize(
    "config", ["nonsense {", CONFIG + "version_policy { specific { versions: 7 } }"], ids=["unread", "no version"]
)
def test_a_failed_model_whose_folder_is_emptied_is_waited_for_no_more(
    watcher: Watcher, pool: LoaderPool, model: MakeModel, index: Index, config: str
) -> None:
    folder = model("m", config=config)
    look(watcher, pool)
    assert not index.ready()
    empty(folder)
    look(watcher, pool)
    assert index.entries() == [IndexEntry("m")]
    assert index.ready()


def test_an_emptied_folder_leaves_what_serves(
    watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel, index: Index
) -> None:
    folder = model("m")
    look(watcher, pool)
    empty(folder)
    look(watcher, pool)
    assert [version.version for version in data_plane.published["m"]] == [1]
    assert index.entries() == [IndexEntry("m", "1", ModelState.READY)]


def test_a_change_that_does_not_load_leaves_what_serves(
    watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel, index: Index
) -> None:
    folder = model("m")
    look(watcher, pool)
    (folder / "config.pbtxt").write_text("nonsense {")
    look(watcher, pool)
    assert [version.version for version in data_plane.published["m"]] == [1]
    assert index.entries() == [IndexEntry("m", "1", ModelState.READY)]
    assert index.ready()


def test_a_repository_that_cannot_be_read_changes_nothing(
    watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel, repository: Path, tmp_path: Path
) -> None:
    model("m")
    look(watcher, pool)
    repository.rename(tmp_path / "unmounted")
    repository.symlink_to(repository)  # nobody can read a link to itself, whatever they may do
    assert not watcher.poll()
    look(watcher, pool)
    assert len(data_plane.published["m"]) == 1
    repository.unlink()
    (tmp_path / "unmounted").rename(repository)
    look(watcher, pool)
    assert data_plane.history == ["build m 1", "publish m [1]"]


def test_the_models_of_a_repository_that_is_gone_go_and_come_with_it(
    watcher: Watcher, pool: LoaderPool, data_plane: DataPlane, model: MakeModel, repository: Path, tmp_path: Path
) -> None:
    model("m")
    look(watcher, pool)
    repository.rename(tmp_path / "elsewhere")
    assert watcher.poll(), "a repository may be replaced in two steps"
    look(watcher, pool)
    assert data_plane.published["m"] == []
    (tmp_path / "elsewhere").rename(repository)
    look(watcher, pool)
    assert [version.version for version in data_plane.published["m"]] == [1]


def test_a_repository_that_is_gone_keeps_no_other_from_being_followed(
    tmp_path: Path, pool: LoaderPool, data_plane: DataPlane, index: Index, planner: Planner
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    two.mkdir()
    both = Lifecycle(data_plane, Repository([one, two], need="none"), planner, index)  # type: ignore[arg-type]
    watcher = Watcher(both, pool, interval_s=3600.0)
    watcher.take_as_known()
    make_model(two, "m", (1,))
    look(watcher, pool)
    assert data_plane.history == ["build m 1", "publish m [1]"]
    one.mkdir()
    make_model(one, "n", (1,))
    look(watcher, pool)
    assert data_plane.history[2:] == ["build n 1", "publish n [1]"]


def test_the_thread_looks_until_it_is_stopped(
    lifecycle: Lifecycle, pool: LoaderPool, data_plane: DataPlane, model: MakeModel
) -> None:
    built = threading.Event()
    data_plane.before_build = lambda name, version: built.set()
    watcher = Watcher(lifecycle, pool, interval_s=0.01)
    watcher.take_as_known()
    watcher.start()
    model("m")
    assert built.wait(TIMEOUT_S)
    assert watcher.stop(TIMEOUT_S)
