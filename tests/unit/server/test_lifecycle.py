"""Loading and unloading: what is published, what the index says, and what a caller is told."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.errors import ModelLoadError
from alipes.server.index import Index
from alipes.server.lifecycle import Lifecycle, LoadFailed
from support.data_plane import DataPlane
from support.folders import CONFIG

MakeModel = Callable[..., Path]
PATIENCE_S = 30


def states(data_plane: DataPlane, model: str = "m") -> dict[str, tuple[str, str]]:
    return {e["version"]: (e["state"], e["reason"]) for e in data_plane.index if e["name"] == model}


def served(data_plane: DataPlane, model: str = "m") -> list[int]:
    return [version.version for version in data_plane.published.get(model, [])]


def failure_of(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(LoadFailed) as failure:
        call()
    return failure.value.code, str(failure.value)


def touch(folder: Path) -> None:
    """Makes the folder look changed, however coarse the file system's clock is."""
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


def test_a_failed_version_is_told_in_the_words_of_triton(
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
    touch(folder)
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
    touch(folder)
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
    for config in (None, json.dumps(override), None):
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


def test_a_model_without_versions_is_told_so(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("m", 1, config=CONFIG + "version_policy { specific { versions: [ 7 ] } }")
    assert failure_of(lambda: lifecycle.load("m")) == (
        "INVALID_ARG",
        "load failed for model 'm': at least one version must be available under the version policy of model 'm'\n",
    )
    assert data_plane.published == {"m": []}


def test_a_failure_at_start_is_kept_in_the_index(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("m", config="nonsense {")
    assert not lifecycle.load_at_start("m")
    ((version, (state, reason)),) = states(data_plane).items()
    assert (version, state) == ("", "UNAVAILABLE")
    assert "config.pbtxt" in reason
    assert data_plane.ready is False


def test_a_start_that_is_called_off_builds_nothing(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("m")
    lifecycle.cancel()
    assert not lifecycle.load_at_start("m")
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
    told = index.end_unloading
    index.end_unloading = lambda *args: (told(*args), ended.set())[0]  # type: ignore[method-assign]
    version.idle.set()
    assert ended.wait(PATIENCE_S)
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
