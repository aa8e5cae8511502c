"""Loading again: what a change of a folder, a configuration or its versions builds anew."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from alipes.server.lifecycle import Lifecycle
from alipes.server.override import Override
from support.data_plane import DataPlane
from support.folders import CONFIG, touch
from support.lifecycle import failure_of, refuse, served, states

MakeModel = Callable[..., Path]


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
