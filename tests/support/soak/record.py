"""The samples of a soak: a table in a file, a row for each sample, which can be read while it grows."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from support.soak.series import SERIES

FILE: Final = "samples.csv"

# `run` counts the servers whose samples the file holds, `seconds` goes from the start of each.
COLUMNS: Final = ("run", "seconds", *(series.name for series in SERIES), "answers", "refusals", "faults", "mistakes")

Sample = dict[str, float | None]


class Writer:
    """Adds the samples of one more run to a folder. A context manager."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder, if it is not there yet."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE
        self._run = 1 + max(_runs(path), default=0)
        before = path.read_bytes() if path.exists() else b""
        self._file = path.open("a", newline="", encoding="utf-8")
        self._rows = csv.DictWriter(self._file, COLUMNS, lineterminator="\n")
        if not before:
            self._rows.writeheader()
        elif not before.endswith(b"\n"):
            # A run that was killed has left half a row.
            self._file.write("\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, sample: Sample) -> None:
        """Writes a sample at once, so that nothing is lost with the process."""
        self._rows.writerow({"run": self._run} | {name: _text(value) for name, value in sample.items()})
        self._file.flush()


class Record:
    """The samples of the last run of a folder."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self._rows = rows

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads them, without the row that is being written."""
        with (folder / FILE).open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row[COLUMNS[-1]]]
        return cls([row for row in rows if row["run"] == rows[-1]["run"]])

    @property
    def seconds(self) -> float:
        """How long the run lasts so far."""
        return float(self._rows[-1]["seconds"]) if self._rows else 0.0

    def column(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The times of a column, in hours, and its values, without samples that have none."""
        pairs = [(float(row["seconds"]) / 3600, float(row[name])) for row in self._rows if row[name]]
        table = np.array(pairs, np.float64).reshape(-1, 2)
        return table[:, 0], table[:, 1]


def _runs(path: Path) -> list[int]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [int(row["run"]) for row in csv.DictReader(file) if row["run"]]


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}" if isinstance(value, float) else str(value)
