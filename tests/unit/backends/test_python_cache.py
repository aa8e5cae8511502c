"""Unpacked environments: once for all who want one, and never half of one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alipes.backends.python import cache
from alipes.backends.python.cache import unpacked
from alipes.errors import ModelLoadError

TIMEOUT_S = 30


class Unpacker:
    """Stands in for unpacking: writes one file, remembers each call, and fails where it is told to."""

    def __init__(self) -> None:
        self.calls: list[Path] = []
        self.error: Exception | None = None
        self.may_go_on = threading.Event()
        self.begun = threading.Event()
        self.may_go_on.set()

    def __call__(self, archive: Path, folder: Path) -> None:
        self.calls.append(folder)
        (folder / "file").write_text(archive.read_text())
        self.begun.set()
        assert self.may_go_on.wait(TIMEOUT_S)
        if self.error is not None:
            raise self.error


@pytest.fixture
def unpacker() -> Unpacker:
    return Unpacker()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(autouse=True)
def no_locks_left(temporary: Path) -> Iterator[None]:
    yield
    forget()


def forget() -> None:
    """What the end of this process would do: lets go of every lock."""
    while cache._held:
        os.close(cache._held.popitem()[1])


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    made = tmp_path / "packed.tar.gz"
    made.write_text("first")
    return made


def change(archive: Path, text: str = "second") -> None:
    archive.write_text(text)
    later = archive.stat().st_mtime_ns + 10**9
    os.utime(archive, ns=(later, later))


def test_an_archive_is_unpacked_once(archive: Path, unpacker: Unpacker) -> None:
    folder = unpacked(archive, unpacker)
    assert (folder / "file").read_text() == "first"
    assert unpacked(archive, unpacker) == folder
    assert unpacker.calls == [folder]


def test_the_next_server_finds_it_ready(archive: Path, unpacker: Unpacker) -> None:
    folder = unpacked(archive, unpacker)
    forget()
    assert unpacked(archive, unpacker) == folder
    assert len(unpacker.calls) == 1


def test_a_changed_archive_replaces_its_unused_folder(archive: Path, unpacker: Unpacker) -> None:
    first = unpacked(archive, unpacker)
    change(archive)
    second = unpacked(archive, unpacker)
    assert (second / "file").read_text() == "second"
    assert first.exists(), "this process has it in use"
    forget()
    change(archive, "third one")
    third = unpacked(archive, unpacker)
    assert sorted(path.name for path in third.parent.iterdir() if path.is_dir()) == [third.name]


def test_other_archives_stay(archive: Path, tmp_path: Path, unpacker: Unpacker) -> None:
    first = unpacked(archive, unpacker)
    forget()
    other = tmp_path / "other.tar.gz"
    other.write_text("other")
    assert unpacked(other, unpacker) != first
    assert first.exists()


def test_half_of_an_environment_is_unpacked_anew(archive: Path, unpacker: Unpacker) -> None:
    unpacker.error = ModelLoadError("the disk is full")
    with pytest.raises(ModelLoadError, match="the disk is full"):
        unpacked(archive, unpacker)
    (half,) = unpacker.calls
    assert not half.exists()
    half.mkdir()
    (half / "left").write_text("by a server that was killed")
    unpacker.error = None
    assert unpacked(archive, unpacker) == half
    assert sorted(path.name for path in half.iterdir()) == ["file"]


def test_two_loads_at_once_unpack_once(archive: Path, unpacker: Unpacker) -> None:
    unpacker.may_go_on.clear()
    folders: list[Path] = []
    loads = [threading.Thread(target=lambda: folders.append(unpacked(archive, unpacker))) for _ in range(4)]
    for load in loads:
        load.start()
    assert unpacker.begun.wait(TIMEOUT_S)
    assert folders == []
    unpacker.may_go_on.set()
    for load in loads:
        load.join(TIMEOUT_S)
    assert len(folders) == 4
    assert len(set(folders)) == len(unpacker.calls) == 1


def test_a_server_that_dies_while_unpacking_leaves_nothing_locked(
    archive: Path, temporary: Path, unpacker: Unpacker
) -> None:
    script = f"""
import os, sys, tempfile
from pathlib import Path
from alipes.backends.python.cache import unpacked
tempfile.tempdir = {str(temporary)!r}
def die(archive, folder):
    (folder / "half").write_text("")
    os._exit(9)
unpacked(Path({str(archive)!r}), die)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    folder = unpacked(archive, unpacker)
    assert sorted(path.name for path in folder.iterdir()) == ["file"]


def test_the_folder_is_this_users_alone(archive: Path, temporary: Path, unpacker: Unpacker) -> None:
    unpacked(archive, unpacker)
    (home,) = temporary.iterdir()
    assert home.stat().st_mode & 0o077 == 0


def test_a_folder_that_others_may_write_is_not_trusted(archive: Path, temporary: Path, unpacker: Unpacker) -> None:
    home = temporary / f"alipes-{os.getuid()}"
    home.mkdir()
    home.chmod(0o777)
    with pytest.raises(ModelLoadError, match=f"{home} is not a folder of this user alone; remove it, or set TMPDIR"):
        unpacked(archive, unpacker)
    assert unpacker.calls == []


def test_a_link_in_its_place_is_not_followed(
    archive: Path, temporary: Path, tmp_path: Path, unpacker: Unpacker
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (temporary / f"alipes-{os.getuid()}").symlink_to(elsewhere)
    with pytest.raises(ModelLoadError, match="is not a folder of this user alone"):
        unpacked(archive, unpacker)
    assert list(elsewhere.iterdir()) == []
