"""Folders that go with their process, whatever ends it."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from alipes import process_folder
from alipes.process_folder import ProcessFolder, sweep

# Makes a folder of each kind, says where, and waits to be killed.
HOLDER = """
import sys, time
from alipes.process_folder import ProcessFolder
folders = [ProcessFolder(kind) for kind in ("export", "load", "repository")]
for folder in folders:
    (folder.path / "file").write_text("x")
print(*(folder.path for folder in folders), flush=True)
time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def holder(temporary: Path) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", HOLDER], env=environment, stdout=subprocess.PIPE, text=True) as made:
        yield made
        made.kill()


def folders_of(process: subprocess.Popen[str]) -> list[Path]:
    assert process.stdout is not None
    return [Path(path) for path in process.stdout.readline().split()]


def test_folders_of_a_process_that_was_killed_go(holder: subprocess.Popen[str], temporary: Path) -> None:
    folders = folders_of(holder)
    sweep()
    assert all((folder / "file").exists() for folder in folders), "their process lives"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    sweep()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("kind", get_args(process_folder.Kind))
def test_whoever_makes_a_folder_removes_those_that_were_left(temporary: Path, kind: process_folder.Kind) -> None:
    for left in get_args(process_folder.Kind):
        (temporary / f"alipes-{left}-left").mkdir()
        (temporary / f"alipes-{left}-left" / ".lock").touch()
    made = ProcessFolder(kind)
    assert list(temporary.iterdir()) == [made.path]
    made.close()
    made.close()
    assert list(temporary.iterdir()) == []


def test_a_folder_is_for_this_user_alone_and_stays_while_it_is_used(temporary: Path) -> None:
    made, other = ProcessFolder("load"), ProcessFolder("load")
    assert made.path.exists()
    assert oct(made.path.stat().st_mode & 0o777) == "0o700"
    made.close()
    assert [path.name for path in temporary.iterdir()] == [other.path.name]
    other.close()


def test_a_forked_process_leaves_the_folder_alone(temporary: Path) -> None:
    made = ProcessFolder("attached")
    if (child := os.fork()) == 0:
        made.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert list(temporary.iterdir()) == [made.path]
    made.close()
    assert list(temporary.iterdir()) == []


def test_a_folder_goes_with_the_object_at_the_latest(temporary: Path) -> None:
    ProcessFolder("repository")
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_what_is_no_folder_of_ours_stays(temporary: Path) -> None:
    (temporary / "alipes-load-made-now").mkdir()
    (temporary / "alipes-load-file").write_text("x")
    (temporary / "other").mkdir()
    (temporary / "other" / ".lock").touch()
    (temporary / "alipes-load-link").symlink_to(temporary / "other")
    before = sorted(temporary.rglob("*"))
    sweep()
    assert sorted(temporary.rglob("*")) == before


def test_a_place_that_cannot_be_seen_is_passed_over(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(temporary / "nowhere"))
    sweep()
    with pytest.raises(OSError, match="nowhere"):
        ProcessFolder("load")


def test_a_folder_that_cannot_be_locked_is_not_left_behind(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(lock: int, how: int) -> None:
        raise OSError("no locks")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(OSError, match="no locks"):
        ProcessFolder("load")
    assert list(temporary.iterdir()) == []
