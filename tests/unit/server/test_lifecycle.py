"""Loading and unloading: what is published, what the index says, and what a caller is told."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.errors import ModelLoadError
from alipes.repository.repository import Repository
from alipes.server.failures import LoadFailed
from alipes.server.index import Index
from alipes.server.lifecycle import Lifecycle
from alipes.server.override import Override
from alipes.server.planner import Planner
from support.data_plane import DataPlane
from support.folders import CONFIG, make_model

MakeModel = Callable[..., Path]
TIMEOUT_S = 30


def states(data_plane: DataPlane, model: str = "m") -> dict[str, tuple[str, str]]:
    return {e["version"]: (e["state"], e["reason"]) for e in data_plane.index if e["name"] == model}


def served(data_plane: DataPlane, model: str = "m") -> list[int]:
    return [version.version for version in data_plane.published.get(model, [])]


def failure_of(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(LoadFailed) as failure:
        call()
    return failure.value.code, str(failure.value)


def touch(folder: Path) -> None:
    """Makes a folder look changed, however coarse the file system's clock is."""
    later = folder.stat().st_mtime_ns + 10**9
    os.utime(folder, ns=(later, later))


def refuse(data_plane: DataPlane, version: int, text: str = "it broke", code: str = "INVALID_ARG") -> None:
    data_plane.refused["m", version] = ModelLoadError(text, code=code)


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


def test_a_failed_reload_leaves_what_served(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    folder = model("m")
    lifecycle.load("m")
    before = data_plane.published["m"]
    touch(folder / "1")
    refuse(data_plane, 1)
    failure_of(lambda: lifecycle.load("m"))
    assert data_plane.published["m"] is before
    assert states(data_plane) == {"1": ("READY", "")}
    assert data_plane.ready is True


def test_a_load_without_change_does_nothing(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("m")
    lifecycle.load("m")
    lifecycle.load("m")
    assert data_plane.history == ["build m 1", "publish m [1]"]


def test_a_changed_folder_is_loaded_again(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    folder = model("m")
    lifecycle.load("m")
    touch(folder / "1")
    lifecycle.load("m")
    assert data_plane.history == ["build m 1", "publish m [1]"] * 2


def test_a_version_that_has_not_changed_is_not_built_again(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("m", 1, 2, config=CONFIG + "version_policy { all { } }")
    lifecycle.load("m")
    (first, _) = data_plane.published["m"]
    touch(folder / "2")
    model("m", 3, config=None)
    lifecycle.load("m")
    assert data_plane.history[3:] == ["build m 2", "build m 3", "publish m [1, 2, 3]"]
    assert data_plane.published["m"][0] is first


def test_a_version_that_is_gone_is_unloaded(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    folder = model("m", 1, 2, config=CONFIG + "version_policy { all { } }")
    lifecycle.load("m")
    shutil.rmtree(folder / "2")
    lifecycle.load("m")
    assert data_plane.history[3:] == ["publish m [1]"]
    assert states(data_plane) == {"1": ("READY", ""), "2": ("UNAVAILABLE", "unloaded")}


def instances(count: int) -> str:
    return CONFIG + f"instance_group [ {{ count: {count} kind: KIND_CPU }} ]"


def configure(folder: Path, config: str) -> None:
    """Writes another configuration, which looks changed however coarse the file system's clock is."""
    before = (folder / "config.pbtxt").stat().st_mtime_ns
    (folder / "config.pbtxt").write_text(config)
    os.utime(folder / "config.pbtxt", ns=(before + 10**9, before + 10**9))


def test_the_number_of_instances_changes_in_place(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("m", config=instances(1))
    lifecycle.load("m")
    (before,) = data_plane.published["m"]
    for count in (3, 3, 2):
        configure(folder, instances(count))
        touch(folder)
        lifecycle.load("m")
    assert data_plane.history == [
        *("build m 1", "publish m [1]"),
        *("adapt m 1 to 3", "publish m [1]", "publish m [1]"),
        *("adapt m 1 to 2", "publish m [1]"),
    ]
    assert data_plane.published["m"] == [before]
    assert before.spec["instances"] == ["m_0_0", "m_0_1"]
    config = json.loads(str(before.spec["config_json"]))
    assert [group["count"] for group in config["instance_group"]] == [2]


def test_instances_and_something_else_are_a_reload(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("m", config=instances(1))
    lifecycle.load("m")
    configure(folder, instances(2).replace("max_batch_size: 4", "max_batch_size: 8"))
    lifecycle.load("m")
    assert data_plane.history[2:] == ["build m 1", "publish m [1]"]


def test_a_further_instance_that_does_not_load_leaves_what_serves(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("m", config=instances(1))
    lifecycle.load("m")
    configure(folder, instances(2))
    refuse(data_plane, 1, "no memory")
    assert (
        "version 1 is at UNAVAILABLE state: Invalid argument: no memory" in failure_of(lambda: lifecycle.load("m"))[1]
    )
    assert states(data_plane) == {"1": ("READY", "")}
    data_plane.refused.clear()
    lifecycle.load("m")
    assert data_plane.history[-2:] == ["adapt m 1 to 2", "publish m [1]"]


def test_another_version_policy_builds_only_what_is_missing(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("m", 1, 2)
    lifecycle.load("m")
    configure(folder, CONFIG + "version_policy { all { } }")
    lifecycle.load("m")
    assert data_plane.history[2:] == ["build m 1", "adapt m 2 to 2", "publish m [1, 2]"]
    assert "all" in json.loads(str(data_plane.published["m"][1].spec["config_json"]))["version_policy"]


def test_what_versions_share_is_part_of_each(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    folder = model("m")
    lifecycle.load("m")
    (folder / "labels.txt").write_text("a")
    lifecycle.load("m")
    assert data_plane.history == ["build m 1", "publish m [1]"] * 2


def test_a_load_that_failed_is_tried_again_without_change(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m")
    refuse(data_plane, 1)
    failure_of(lambda: lifecycle.load("m"))
    data_plane.refused.clear()
    lifecycle.load("m")
    assert served(data_plane) == [1]


def test_an_override_stays_in_force_until_the_folder_changes(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("m")
    port = {"data_type": "TYPE_FP32", "dims": [2]}
    override = {"backend": "onnxruntime", "max_batch_size": 2}
    override |= {"input": [{"name": "X", **port}], "output": [{"name": "Y", **port}]}
    sizes = []
    for config in (None, Override(json.dumps(override)), None):
        lifecycle.load("m", config)
        sizes.append(data_plane.published["m"][0].spec["max_batch_size"])
    touch(folder)
    lifecycle.load("m")
    sizes.append(data_plane.published["m"][0].spec["max_batch_size"])
    assert sizes == [4, 2, 2, 4]


def test_a_new_version_takes_the_place_of_the_old(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m", 1)
    lifecycle.load("m")
    touch(model("m", 2))
    lifecycle.load("m")
    assert served(data_plane) == [2]
    assert states(data_plane) == {"1": ("UNAVAILABLE", "unloaded"), "2": ("READY", "")}


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
    lifecycle: Lifecycle, model: MakeModel, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alipes.server.log.log.propagate", True)
    model("m", config=CONFIG.replace("max_batch_size", "max_batch_sise"))
    assert failure_of(lambda: lifecycle.load("m"))[1] == "failed to load 'm', failed to poll from model repository"
    assert "Poll failed for model directory 'm': " in caplog.text
    assert "max_batch_size" in caplog.text  # the nearest key


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


def conjure(lifecycle: Lifecycle, files: dict[str, bytes] | None = None) -> None:
    """Loads a model that no repository has."""
    port = {"data_type": "TYPE_FP32", "dims": [2]}
    config = {
        "backend": "onnxruntime",
        "max_batch_size": 4,
        "input": [{"name": "X", **port}],
        "output": [{"name": "Y", **port}],
    }
    lifecycle.load("conjured", Override(json.dumps(config), files or {"1/model.onnx": b"onnx"}))


def test_files_of_a_request_are_a_model_while_it_is_loaded(
    lifecycle: Lifecycle, data_plane: DataPlane, index: Index
) -> None:
    conjure(lifecycle)
    (version,) = data_plane.published["conjured"]
    path = Path(version.spec["engine"]["model_path"])  # type: ignore[index]
    assert path.read_bytes() == b"onnx"
    assert index.entries() == []
    lifecycle.unload("conjured")
    assert not path.exists()


def test_a_name_that_a_request_brought_is_forgotten_with_it(
    lifecycle: Lifecycle, data_plane: DataPlane, index: Index
) -> None:
    conjure(lifecycle)
    lifecycle.unload("conjured")
    assert data_plane.published == {}
    assert index.touched() == []


def test_files_go_when_others_take_their_place(lifecycle: Lifecycle, data_plane: DataPlane) -> None:
    paths = []
    for content in (b"one", b"two"):
        conjure(lifecycle, {"1/model.onnx": content})
        paths.append(Path(data_plane.published["conjured"][0].spec["engine"]["model_path"]))  # type: ignore[index]
    assert [path.exists() for path in paths] == [False, True]
    lifecycle.close()
    assert not paths[1].exists()


def test_files_of_a_load_that_failed_go_at_once(
    lifecycle: Lifecycle, data_plane: DataPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data_plane.refused["conjured", 1] = ModelLoadError("it broke")
    failure_of(lambda: conjure(lifecycle))
    assert list(tmp_path.glob("alipes-load-*/*/conjured")) == []
    assert data_plane.published == {}
    assert data_plane.ready is True


def test_a_model_of_a_request_gives_way_to_the_repository(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("conjured")
    conjure(lifecycle)
    lifecycle.load("conjured")
    (version,) = data_plane.published["conjured"]
    assert version.spec["engine"]["model_path"] == str(folder / "1" / "model.onnx")  # type: ignore[index]


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
    retrying = Lifecycle(data_plane, Repository([repository]), planner, index, retries=2)  # type: ignore[arg-type]
    retrying.load("m")
    assert attempts == [1, 1, 1]
    assert served(data_plane) == [1]


def test_the_last_failure_is_reported_when_no_attempt_is_left(
    repository: Path, data_plane: DataPlane, index: Index, planner: Planner, model: MakeModel
) -> None:
    model("m")
    refuse(data_plane, 1)
    retrying = Lifecycle(data_plane, Repository([repository]), planner, index, retries=1)  # type: ignore[arg-type]
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
