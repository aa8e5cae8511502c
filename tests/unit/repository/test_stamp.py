"""What a look at a model's folder notices, and what it takes for the same."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.repository.stamp import ABSENT, stamp_folder

EVEN_LONGER_AGO = (1, 1)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "m"
    for place in ("config.pbtxt", "labels.txt", "1/model.onnx", "1/deep/er/file", "2/model.onnx", "configs/a.pbtxt"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text("old")
    return folder


def test_two_looks_at_the_same_are_equal(model: Path) -> None:
    assert stamp_folder(model) == stamp_folder(model)


def edit(path: Path) -> None:
    seen = path.stat()
    path.write_text("new content")
    os.utime(path, ns=(seen.st_mtime_ns, seen.st_mtime_ns))


def replace_by_an_older_one(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("OLD")
    os.utime(other, ns=EVEN_LONGER_AGO)
    other.replace(path)


def touch(path: Path) -> None:
    later = path.stat().st_mtime_ns + 1
    os.utime(path, ns=(later, later))


def point_elsewhere(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent / "labels.txt")


@pytest.mark.parametrize("change", [edit, replace_by_an_older_one, touch, point_elsewhere, Path.unlink])
@pytest.mark.parametrize("place", ["1/model.onnx", "1/deep/er/file"])
def test_whatever_happens_to_a_file_of_a_version_concerns_this_version(
    model: Path, place: str, change: Callable[[Path], None]
) -> None:
    before = stamp_folder(model)
    change(model / place)
    after = stamp_folder(model)
    assert after != before
    assert after.of_version(1) != before.of_version(1)
    assert after.of_version(2) == before.of_version(2)


@pytest.mark.parametrize("place", ["config.pbtxt", "configs/a.pbtxt"])
def test_a_configuration_concerns_no_version_by_its_look(model: Path, place: str) -> None:
    before = stamp_folder(model)
    edit(model / place)
    after = stamp_folder(model)
    assert after != before
    assert [after.of_version(version) for version in (1, 2)] == [before.of_version(version) for version in (1, 2)]


def test_what_versions_share_concerns_all_of_them(model: Path) -> None:
    before = stamp_folder(model)
    (model / "labels.txt").unlink()
    after = stamp_folder(model)
    assert all(after.of_version(version) != before.of_version(version) for version in (1, 2))


def test_a_further_version_leaves_the_others_alone(model: Path) -> None:
    before = stamp_folder(model)
    shutil.copytree(model / "2", model / "3")
    after = stamp_folder(model)
    assert after != before
    assert after.of_version(2) == before.of_version(2)
    assert after.of_version(3) != before.of_version(3)


def test_the_folder_itself_can_be_touched(model: Path) -> None:
    before = stamp_folder(model)
    touch(model)
    after = stamp_folder(model)
    assert after != before
    assert after.of_version(1) == before.of_version(1)


def test_compiled_code_is_no_change(model: Path) -> None:
    before = stamp_folder(model)
    (model / "__pycache__").mkdir()
    os.utime(model, ns=(model.stat().st_atime_ns, model.stat().st_mtime_ns))
    (model / "__pycache__" / "model.pyc").write_text("")
    assert stamp_folder(model).shared == before.shared


def test_a_linked_version_is_looked_into(model: Path) -> None:
    (model / "2").rename(model.parent / "elsewhere")
    (model / "2").symlink_to(model.parent / "elsewhere")
    before = stamp_folder(model)
    edit(model.parent / "elsewhere" / "model.onnx")
    assert stamp_folder(model).of_version(2) != before.of_version(2)


def test_a_circle_of_links_ends(model: Path) -> None:
    (model / "1" / "up").symlink_to(model)
    assert stamp_folder(model) == stamp_folder(model)


def test_a_link_to_nowhere_is_seen(model: Path) -> None:
    before = stamp_folder(model)
    (model / "1" / "nowhere").symlink_to(model / "absent")
    assert stamp_folder(model) != before


def test_a_folder_that_is_not_there_is_absent(tmp_path: Path) -> None:
    assert stamp_folder(tmp_path / "gone") is ABSENT
    assert ABSENT.of_version(1) == (b"", b"")


def test_folders_may_stand_deeper_in_each_other_than_calls(model: Path) -> None:
    here = os.open(model / "1", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    try:
        before = stamp_folder(model)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        assert stamp_folder(model).of_version(1) != before.of_version(1)
    finally:
        os.close(here)
        # Python's own function would not get to the bottom of it.
        subprocess.run(["rm", "-rf", model / "1" / "d"], check=True)
