"""What each fuzzer has tried in all, and the table of it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "alipes"
CORPORA = CACHE / "fuzz"


class Found(NamedTuple):
    """What came of one run.

    Attributes:
        inputs: Inputs that were tried.
        seconds: How long it took.
        coverage: Edges of the program that inputs of the corpus reach.
        failed: Whether an input broke a promise.
    """

    inputs: int
    seconds: float
    coverage: int
    failed: bool


@dataclass
class Record:
    """What came of all runs of a fuzzer.

    Attributes:
        name: The fuzzer.
        inputs: Inputs that were tried.
        seconds: How long that took.
        coverage: Edges that were reached in the last run.
        failures: Runs that ended at an input that broke a promise.
    """

    name: str
    inputs: int = 0
    seconds: float = 0.0
    coverage: int = 0
    failures: int = 0

    @staticmethod
    def file(name: str) -> Path:
        """Where it is written."""
        return CORPORA / name / "record.json"

    @classmethod
    def read(cls, name: str) -> Record:
        """What was written before."""
        file = cls.file(name)
        return cls(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else cls(name)

    def write(self) -> None:
        """Writes it for the next run."""
        self.file(self.name).parent.mkdir(parents=True, exist_ok=True)
        self.file(self.name).write_text(json.dumps(asdict(self)), encoding="utf-8")

    def add(self, found: Found) -> None:
        """Counts a run."""
        self.inputs += found.inputs
        self.seconds += found.seconds
        self.coverage = found.coverage or self.coverage
        self.failures += found.failed

    @property
    def crashes(self) -> list[Path]:
        """The inputs that broke a promise and are no vectors yet."""
        return sorted((CORPORA / self.name / "crashes").glob("*"))

    @property
    def corpus(self) -> int:
        """Inputs that reach something that no other reaches."""
        return len(list((CORPORA / self.name / "corpus").glob("*")))

    def forget_crash(self, crash: Path) -> Record:
        """The same once a crash has become a vector."""
        crash.unlink(missing_ok=True)
        return replace(self)


def table(records: Sequence[Record]) -> str:
    """A line for each fuzzer, and one for all."""
    rows = [("fuzzer", "inputs", "a second", "time", "corpus", "edges", "crashes")]
    for record in records:
        rate = record.inputs / record.seconds if record.seconds else 0
        numbers = (f"{record.inputs:,}", f"{rate:,.0f}", f"{record.seconds:,.0f} s", f"{record.corpus:,}")
        rows.append((record.name, *numbers, f"{record.coverage:,}", str(len(record.crashes))))
    total = sum(record.inputs for record in records)
    rows.append(("all", f"{total:,}", "", f"{sum(record.seconds for record in records):,.0f} s", "", "", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(text.ljust(width) if column == 0 else text.rjust(width) for column, (text, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    crashes = [f"  {crash}" for record in records for crash in record.crashes]
    return "\n".join([*lines, *(["", "inputs that break a promise:", *crashes] if crashes else [])])
