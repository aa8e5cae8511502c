"""Recorded runs of perf_analyzer, and their text without the figures."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.checkout import ROOT

FOLDER = ROOT / "tests" / "golden" / "perf_analyzer"

_FIGURE = re.compile(r"(?<![\w.])\d+(\.\d+)?(e[+-]?\d+)?")
_VERBATIM = ("Request concurrency: ", "Request Rate: ", " Successfully read", "  Batch size: ", "  Concurrency limit: ")
_USAGE = "[... usage text left out ...]"


@dataclass(frozen=True)
class RecordedRun:
    """A run: its words, what it wrote, and how it ended."""

    name: str
    words: Sequence[str]
    status: int
    out: Sequence[str]
    err: Sequence[str]

    @classmethod
    def read(cls, path: Path) -> RecordedRun:
        """The run of a file."""
        head, _, rest = path.read_text(encoding="utf-8").partition("## stdout\n")
        out, _, err = rest.partition("## stderr\n")
        command, status = head.splitlines()[:2]
        words = shlex.split(command.removeprefix("$ perf_analyzer"))
        return cls(path.stem, words, int(status.removeprefix("# exit ")), lines(out), lines(err))

    @property
    def has_usage(self) -> bool:
        """Whether the usage follows the error."""
        return _USAGE in self.err

    def file(self, suffix: str) -> Path:
        """What it wrote beside the text."""
        return FOLDER / f"{self.name}.{suffix}"


def recorded_runs() -> list[RecordedRun]:
    """All of them."""
    return [RecordedRun.read(path) for path in sorted(FOLDER.glob("*.txt"))]


def lines(text: str) -> list[str]:
    """The lines of a text, without empty ones at its end."""
    return text.rstrip("\n").splitlines()


def without_figures(text: Sequence[str]) -> list[str]:
    """Lines with `N` in the place of what is measured; levels and settings stay."""
    return [_bare(line) for line in text]


def _bare(line: str) -> str:
    head, comma, rest = line.partition(", throughput: ")
    if not comma:
        if line.startswith(_VERBATIM):
            return line
        head, comma, rest = line.partition(": ")
    return head + comma + _FIGURE.sub("N", rest) if comma else line
