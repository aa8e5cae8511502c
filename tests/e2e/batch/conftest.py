"""Runs over files whose rows are known, at a server that holds one row until the test leaves a note."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.batch_runs import FILES, RowsByPlace, add_files, add_picky
from support.server import ServerProcess


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The folder of notes between the test and the model."""
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture
def expected(tmp_path: Path, repository: Path) -> RowsByPlace:
    """The inputs, and the model; what a run makes of each row."""
    add_picky(repository)
    return add_files(tmp_path / "data", FILES)


@pytest.fixture
def server(serve: Callable[..., ServerProcess], repository: Path, notes: Path, expected: RowsByPlace) -> ServerProcess:
    """A server of the model."""
    return serve(repository, environment={"NOTES": str(notes)})
