"""Loading and unloading: what is published, the index, and the errors of failed loads."""

from __future__ import annotations

import gc
import os
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.errors import ModelLoadError, RepositoryError
from alipes.repository.repository import Listing, Repository
from alipes.server.index import Index
from alipes.server.lifecycle import Lifecycle
from alipes.server.loads import LoadLimits
from alipes.server.log import log
from alipes.server.override import Override
from alipes.server.planner import Planner
from alipes.types import IndexEntry
from support.data_plane import DataPlane
from support.folders import CONFIG, make_model
from support.lifecycle import failure_of, refuse, served, states

MakeModel = Callable[..., Path]
TIMEOUT_S = 30


def test_the_latest_version_is_published_and_ready(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m", 1, 3)
    lifecycle.load("m")
    assert served(data_plane) == [3]
    assert states(data_plane) == {"3": ("READY", "")}


def test_every_version_of_the_policy_is_built_before_any_is_published(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m", 1, 2, config=CONFIG + "version_policy { all { } }")
    lifecycle.load("m")
    assert data_plane.history == ["build m 1", "build m 2", "publish m [1, 2]"]


def test_a_version_is_loading_while_it_is_built(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("m")
    seen: list[object] = []
    data_plane.before_build = lambda name, version: seen.append((states(data_plane), data_plane.ready))
    lifecycle.load("m")
    assert seen == [({"1": ("LOADING", "")}, False)]


def test_a_failed_version_is_reported_in_the_words_of_triton(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m", 1, 2, config=CONFIG + "version_policy { all { } }")
    refuse(data_plane, 1)
    refuse(data_plane, 2, "no memory", "INTERNAL")
    assert failure_of(lambda: lifecycle.load("m")) == (
        "INVALID_ARG",
        "load failed for model 'm': version 1 is at UNAVAILABLE state: Invalid argument: it broke;"
        "version 2 is at UNAVAILABLE state: Internal: no memory;\n",
    )
    assert states(data_plane) == {
        "1": ("UNAVAILABLE", "Invalid argument: it broke"),
        "2": ("UNAVAILABLE", "Internal: no memory"),
    }


def test_a_model_that_failed_is_known_to_have_no_version(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m")
    refuse(data_plane, 1)
    failure_of(lambda: lifecycle.load("m"))
    assert data_plane.published == {"m": []}


def test_one_failed_version_keeps_the_others_of_the_load_out(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m", 1, 2, config=CONFIG + "version_policy { all { } }")
    refuse(data_plane, 2)
    failure_of(lambda: lifecycle.load("m"))
    assert served(data_plane) == []
    assert states(data_plane)["1"] == ("UNAVAILABLE", "unloaded")


def test_an_unknown_model_leaves_no_trace(lifecycle: Lifecycle, data_plane: DataPlane, index: Index) -> None:
    assert failure_of(lambda: lifecycle.load("absent")) == (
        "INTERNAL",
        "failed to load 'absent', failed to poll from model repository",
    )
    assert data_plane.published == {}
    assert index.touched() == []


@pytest.mark.parametrize("name", ["../m", "", "a/b"])
def test_an_unsafe_name_is_answered_as_an_unknown_one(lifecycle: Lifecycle, name: str) -> None:
    assert failure_of(lambda: lifecycle.load(name))[1] == (
        f"failed to load '{name}', failed to poll from model repository"
    )


def test_a_broken_configuration_is_logged_and_hidden_from_the_client(
    lifecycle: Lifecycle, model: MakeModel, server_log: pytest.LogCaptureFixture
) -> None:
    model("m", config=CONFIG.replace("max_batch_size", "max_batch_sise"))
    assert failure_of(lambda: lifecycle.load("m"))[1] == "failed to load 'm', failed to poll from model repository"
    assert "Poll failed for model directory 'm': " in server_log.text
    assert "max_batch_size" in server_log.text  # the nearest key


def test_a_model_without_versions_is_refused(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("m", 1, config=CONFIG + "version_policy { specific { versions: [ 7 ] } }")
    assert failure_of(lambda: lifecycle.load("m")) == (
        "INVALID_ARG",
        "load failed for model 'm': at least one version must be available under the version policy of model 'm'\n",
    )
    assert data_plane.published == {"m": []}


def test_a_failure_at_start_stays_in_the_index(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("m", config="nonsense {")
    assert not lifecycle.try_load("m")
    ((version, (state, reason)),) = states(data_plane).items()
    assert (version, state) == ("", "UNAVAILABLE")
    assert "config.pbtxt" in reason
    assert data_plane.ready is False


def test_a_start_that_is_called_off_builds_nothing(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m")
    lifecycle.cancel()
    assert not lifecycle.try_load("m")
    assert not any(line.startswith("build") for line in data_plane.history)


def test_unload_takes_the_model_out_at_once(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("m")
    lifecycle.load("m")
    lifecycle.unload("m")
    assert served(data_plane) == []
    assert states(data_plane) == {"1": ("UNAVAILABLE", "unloaded")}
    assert data_plane.ready is True


def test_a_version_with_running_requests_is_unloading_until_they_end(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, index: Index
) -> None:
    model("m")
    lifecycle.load("m")
    (version,) = data_plane.published["m"]
    version.idle.clear()
    lifecycle.unload("m")
    assert states(data_plane) == {"1": ("UNLOADING", "")}
    ended = threading.Event()
    end_unloading = index.end_unloading
    index.end_unloading = lambda *args: (end_unloading(*args), ended.set())[0]  # type: ignore[method-assign]
    version.idle.set()
    assert ended.wait(TIMEOUT_S)
    assert states(data_plane) == {"1": ("UNAVAILABLE", "unloaded")}


def test_unloading_what_is_not_loaded_does_nothing(lifecycle: Lifecycle, data_plane: DataPlane, index: Index) -> None:
    lifecycle.unload("absent")
    assert data_plane.history == []
    assert index.touched() == []


def test_a_model_that_was_unloaded_loads_again(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("m")
    lifecycle.load("m")
    lifecycle.unload("m")
    lifecycle.load("m")
    assert served(data_plane) == [1]
    assert states(data_plane) == {"1": ("READY", "")}


def test_a_new_folder_shows_in_the_index_after_a_look(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, repository: Path
) -> None:
    os.utime(repository, ns=(1, 1))
    lifecycle.refresh()
    assert data_plane.index == []
    model("m")
    lifecycle.refresh()
    assert data_plane.index == [{"name": "m", "version": "", "state": "", "reason": ""}]


def test_a_defect_of_ours_fails_the_version_and_nothing_else(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m")

    def broken(name: str, version: int) -> None:
        raise ZeroDivisionError("nothing to divide by")

    data_plane.before_build = broken
    assert failure_of(lambda: lifecycle.load("m"))[0] == "INVALID_ARG"
    assert states(data_plane) == {"1": ("UNAVAILABLE", "Internal: ZeroDivisionError: nothing to divide by")}


def test_a_failed_load_is_tried_as_often_as_configured(
    repository: Path, data_plane: DataPlane, index: Index, planner: Planner, model: MakeModel
) -> None:
    model("m")
    attempts: list[int] = []

    def flaky(name: str, version: int) -> None:
        attempts.append(version)
        if len(attempts) < 3:
            raise ModelLoadError("no memory")

    data_plane.before_build = flaky
    retrying = Lifecycle(data_plane, Repository([repository]), planner, index, LoadLimits(2))  # type: ignore[arg-type]
    retrying.load("m")
    assert attempts == [1, 1, 1]
    assert served(data_plane) == [1]


def test_the_last_failure_is_reported_when_no_attempt_is_left(
    repository: Path, data_plane: DataPlane, index: Index, planner: Planner, model: MakeModel
) -> None:
    model("m")
    refuse(data_plane, 1)
    retrying = Lifecycle(data_plane, Repository([repository]), planner, index, LoadLimits(1))  # type: ignore[arg-type]
    assert "it broke" in failure_of(lambda: retrying.load("m"))[1]


def test_with_namespaces_one_name_is_loaded_from_every_repository(
    tmp_path: Path, data_plane: DataPlane, index: Index, planner: Planner
) -> None:
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        path.mkdir()
        make_model(path, "m", (1,))
    both = Lifecycle(data_plane, Repository(paths, namespacing=True), planner, index)  # type: ignore[arg-type]
    both.load("m")
    assert {space: len(versions) for space, versions in data_plane.spaces.items()} == {
        ("m", str(path)): 1 for path in paths
    }
    assert [spec["namespace"] for spec in (v.spec for vs in data_plane.spaces.values() for v in vs)] == [
        str(path) for path in paths
    ]
    assert [(entry.name, entry.state) for entry in index.entries()] == [("m", "READY"), ("m", "READY")]
    both.unload("m")
    assert {tuple(versions) for versions in data_plane.spaces.values()} == {()}


UNREADABLE = "max_batch_size: nonsense"


@pytest.fixture
def only_what_is_new() -> Iterator[None]:
    """The collector leaves out what was there before, such as thousands of tests, and so looks in no time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def things_of_failures() -> int:
    """Exceptions, tracebacks and frames that the process holds."""
    gc.collect()
    kinds = (BaseException, types.TracebackType, types.FrameType)
    return sum(isinstance(thing, kinds) for thing in gc.get_objects())


@pytest.mark.parametrize(
    "cause", ["a version", "its configuration", "a name", "a configuration of the request", "files"]
)
@pytest.mark.usefixtures("only_what_is_new")
def test_failed_loads_leave_nothing_behind(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    monkeypatch.setattr(log, "disabled", True)  # the test runner keeps what is logged, and errors with it
    model("m", config=UNREADABLE if cause == "its configuration" else CONFIG)
    refuse(data_plane, 1)
    refuse(data_plane, 1, model="new")
    files = {"1/model.onnx": b"x"} if cause == "files" else {}
    override = Override(UNREADABLE, files) if cause in {"files", "a configuration of the request"} else None
    name = {"a name": "absent", "files": "new"}.get(cause, "m")

    def fail() -> int:
        failure_of(lambda: lifecycle.load(name, override))
        return things_of_failures()

    before = [fail() for _ in range(3)][-1]
    after = [fail() for _ in range(20)][-1]
    assert after <= before, f"{before} became {after}"


def test_the_index_fills_once_a_repository_can_be_read_again(
    repository: Path, data_plane: DataPlane, index: Index, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_model(repository, "m", (1,))

    def fail(path: Path) -> list[str]:
        raise RepositoryError(f"failed to open directory {path}: Input/output error")

    with monkeypatch.context() as patched:  # no file system fails for once on request
        patched.setattr("alipes.repository.repository.subdirectories", fail)
        lifecycle = Lifecycle(data_plane, Repository([repository]), planner, index)  # type: ignore[arg-type]
        lifecycle.refresh()
    assert index.entries() == []
    lifecycle.refresh()
    assert index.entries() == [IndexEntry("m")]


class Counting(Repository):
    """Counts how often all folders are listed."""

    listings = 0

    def read(self) -> Listing:
        self.listings += 1
        return super().read()


def test_a_look_lists_the_folders_at_most_once(
    repository: Path, tmp_path: Path, data_plane: DataPlane, index: Index, planner: Planner
) -> None:
    counting = Counting([repository, tmp_path / "nowhere"], need="none")
    lifecycle = Lifecycle(data_plane, counting, planner, index)  # type: ignore[arg-type]
    lifecycle.refresh()
    assert counting.listings == 2
    (tmp_path / "nowhere").mkdir()
    lifecycle.refresh()
    lifecycle.refresh()
    assert counting.listings == 3, "once all can be read, a look that finds no change lists nothing"


@pytest.mark.parametrize("name", ["blank", "models.old", "models.onnx"])
def test_a_blank_folder_of_any_name_takes_nothing_from_readiness(
    lifecycle: Lifecycle, index: Index, repository: Path, name: str
) -> None:
    (repository / name).mkdir()
    assert lifecycle.try_load(name) is False
    assert index.ready()
    assert index.entries() == [IndexEntry(name)]
