"""Programs of a model's environment: how they end, by themselves or with the load."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.backends.python.archive import unpack
from alipes.backends.python.completion import ask_model
from alipes.backends.python.interpreter import check_interpreter
from alipes.backends.python.program import run_program, started, wait_unreaped
from alipes.errors import ModelLoadError
from alipes.model_load import Load, LoadCancelled
from support.waiting import until

# Leaves the number of its process and that of one that it has started; neither ends by itself.
HANGS = """#!/bin/sh
sleep 600 &
echo $$ $! > {note}.part
mv {note}.part {note}
wait
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    made = tmp_path / "python"
    made.write_text(HANGS.format(note=tmp_path / "note"))
    made.chmod(0o755)
    return made


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_what_a_program_writes_and_how_it_ends_is_known() -> None:
    done = run_program(["/bin/sh", "-c", "echo $WORD; echo no >&2; exit 3"], Load(), variables={"WORD": "yes"})
    assert done is not None
    assert (done.exit_code, done.output, done.errors) == (3, b"yes\n", b"no\n")


def test_a_program_that_takes_too_long_is_killed(program: Path, tmp_path: Path) -> None:
    # A busy machine may not have come so far when the time is up.
    until(lambda: run_program([str(program)], Load(), timeout_s=0.5) is None and (tmp_path / "note").exists())
    until(lambda: all(is_gone(int(pid)) for pid in (tmp_path / "note").read_text().split()))


def _interpreter(program: Path, load: Load) -> None:
    check_interpreter(program, {}, "m", load)


def _completion(program: Path, load: Load) -> None:
    ask_model([str(program)], {}, {"model_name": "m"}, 0, load)


def _unpacking(program: Path, load: Load) -> None:
    """As conda-pack makes it: the archive brings a program that runs once it is unpacked."""
    archive, folder = program.parent / "packed.tar", program.parent / "unpacked"
    folder.mkdir()
    with tarfile.open(archive, "w") as packed:
        for name in ("python", "conda-unpack"):
            packed.add(program, f"bin/{name}")
    unpack(archive, folder, load)


@pytest.mark.parametrize("run", [_interpreter, _completion, _unpacking])
def test_a_load_that_is_cancelled_kills_what_it_runs(
    program: Path, tmp_path: Path, run: Callable[[Path, Load], None]
) -> None:
    load, failures = Load(), []

    def work() -> None:
        try:
            run(program, load)
        except ModelLoadError as error:
            failures.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    until((tmp_path / "note").exists)
    load.cancel()
    thread.join()
    assert failures == [LoadCancelled]
    until(lambda: all(is_gone(int(pid)) for pid in (tmp_path / "note").read_text().split()))


def test_an_archive_is_not_unpacked_for_a_load_that_was_cancelled(tmp_path: Path) -> None:
    load = Load()
    load.cancel()
    with tarfile.open(tmp_path / "packed.tar", "w") as packed:
        packed.add(__file__, "file")
    with pytest.raises(LoadCancelled):
        unpack(tmp_path / "packed.tar", tmp_path, load)
    assert not (tmp_path / "file").exists()


def test_nothing_is_started_for_a_load_that_was_cancelled(program: Path, tmp_path: Path) -> None:
    load = Load()
    load.cancel()
    with pytest.raises(LoadCancelled):
        run_program([str(program)], load)
    assert not (tmp_path / "note").exists()


def test_a_late_cancellation_kills_no_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    load, killed = Load(), []
    hooks: list[Callable[[], object]] = []
    ending = load.ending

    def keep(hook: Callable[[], object]) -> object:
        hooks.append(hook)
        return ending(hook)

    monkeypatch.setattr(load, "ending", keep)
    with started([sys.executable, "-c", ""], {}, load, stdout=subprocess.DEVNULL) as process:
        assert wait_unreaped(process, 0)
    monkeypatch.setattr(os, "killpg", lambda *arguments: killed.append(arguments))
    hooks[0]()
    assert (killed, process.returncode) == ([], 0)
