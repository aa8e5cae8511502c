"""A piece belongs to one worker at a time, and to nobody once that is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from alipes.batch.locks import PieceLocks
from alipes.errors import BatchError


def test_a_piece_is_one_workers_until_it_is_released(tmp_path: Path) -> None:
    first, second = PieceLocks(tmp_path / "locks"), PieceLocks(tmp_path / "locks")
    assert first.acquire(3)
    assert not second.acquire(3)
    assert second.acquire(4)
    first.release(3)
    assert second.acquire(3)
    first.close()
    second.close()


def test_a_worker_that_is_killed_leaves_its_pieces(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\nfrom alipes.batch.locks import PieceLocks\n"
        f"locks = PieceLocks(Path({str(tmp_path / 'locks')!r}))\nassert locks.acquire(7)\nprint('has it', flush=True)\n"
        "input()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "has it\n"
    locks = PieceLocks(tmp_path / "locks")
    assert not locks.acquire(7)
    process.kill()
    process.wait()
    assert locks.acquire(7)
    locks.close()
    process.stdout.close()
    process.stdin.close()


def test_a_file_of_locks_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(BatchError, match="nowhere/locks cannot be opened: No such file or directory"):
        PieceLocks(tmp_path / "nowhere" / "locks")
