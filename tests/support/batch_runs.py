"""Batch runs as processes: their inputs, the model that they ask, and their results row by row."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from support.command import Done
from support.python_models import add_python_model, instances
from support.waiting import TIMEOUT_S, until

RowsByPlace: TypeAlias = dict[tuple[str, int], list[float]]
"""What a run makes of each row, by its file and its number there."""

FILES = 48
"""Files of a run, where a test says nothing else."""
ROWS = 3
"""Rows of a file."""
HELD = 201.0
"""The row that `picky` holds until there is a note `go`; before, it leaves a note `reached` that names its server."""

_PICKY = f"""
class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(given(request)) for request in requests]

    def answer(self, x):
        if (x[:, 0] == {HELD}).any() and not (NOTES / "go").exists():
            note("reached", os.getppid())
            await_note("go")
        if (x[:, 1] < 0).any():
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("negative"))
        return answer(Y=2 * x)
"""


def add_picky(repository: Path, count: int = 2) -> None:
    """Writes the model `picky`: Y is twice X, rows whose second number is negative fail, and one row is held."""
    add_python_model(
        repository,
        "picky",
        _PICKY,
        signature="X: FP32[2] -> Y: FP32[2]",
        config=f"max_batch_size: 8\n{instances(count)}",
    )


def add_files(folder: Path, count: int) -> RowsByPlace:
    """Writes files of rows; returns what a run makes of each row of each file."""
    folder.mkdir()
    expected: RowsByPlace = {}
    for number in range(count):
        rows = np.array([[10 * number + row, 0.5] for row in range(ROWS)], np.float32)
        np.save(folder / f"{number:04}.npy", rows)
        expected |= {(f"{number:04}.npy", row): (2 * rows[row]).tolist() for row in range(ROWS)}
    return expected


def rows_of(folder: Path) -> RowsByPlace:
    """The results of a run by file and row; each row once."""
    from alipes import batch

    found: RowsByPlace = {}
    values = [row.tolist() for columns in batch.results(folder) for row in columns["Y"]]
    places = list(batch.places(folder))
    assert len(values) == len(places)
    for (file, row), value in zip(places, values, strict=True):
        key = (Path(file).name, row)
        assert key not in found
        found[key] = value
    assert list(found) == sorted(found), "in the order of the inputs"
    return found


def set_aside_of(folder: Path) -> list[tuple[str, int | None, str]]:
    """What a run has set aside."""
    lines = [json.loads(line) for line in (folder / "set-aside.jsonl").read_text().splitlines()]
    return [(Path(one["file"]).name, one["row"], one["reason"]) for one in lines]


class BatchProcess:
    """`alipes batch run`, or a command like it, as a process. A context manager: leaving it ends the process."""

    def __init__(
        self,
        *words: object,
        notes: Path | None = None,
        largest_file: int | None = None,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
        command: tuple[str, ...] = ("batch", "run"),
        launcher: tuple[str, ...] = (),
    ) -> None:
        """Starts it.

        Args:
            words: What follows the command.
            notes: Where models that it starts leave notes.
            largest_file: Bytes of the largest file that it, and what it starts, may write.
            folder: The current folder for it.
            variables: Further variables of its environment.
            command: The command.
            launcher: What starts it, such as a program that makes it a process of another user.
        """
        limited = [] if largest_file is None else ["prlimit", f"--fsize={largest_file}"]
        self.process = subprocess.Popen(
            [*limited, *launcher, sys.executable, "-m", "alipes", *command, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=os.environ
            | {"COLUMNS": "80", "NO_COLOR": "1"}
            | ({"NOTES": str(notes)} if notes else {})
            | dict(variables or {}),
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()
        self.process.wait()

    def wait(self) -> Done:
        """What it came to."""
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return Done(self.process.returncode, out, err)


def clients_of(folder: Path) -> list[Any]:
    """What the clients of the last start say of themselves."""
    from alipes import batch
    from alipes.errors import AlipesError

    try:
        return batch.status(folder).clients
    except AlipesError:  # there is no plan yet
        return []


def await_held(notes: Path) -> int:
    """The process of the server that holds the row, once it does."""
    until((notes / "reached").exists, "no row was held")
    return int((notes / "reached").read_text())


def holder_of(folder: Path) -> Any:
    """What the client says of itself whose row is held, once the others have nothing left to do."""

    def running() -> list[Any]:
        return [client for client in clients_of(folder) if client.state == "runs"]

    until(lambda: len(running()) == 1, "other clients work as well")
    (holder,) = running()
    return holder


def done_pieces(folder: Path) -> dict[str, int]:
    """The pieces that are done, with the time when each was written."""
    return {file.name: file.stat().st_mtime_ns for file in (folder / "pieces").glob("[0-9]*")}
