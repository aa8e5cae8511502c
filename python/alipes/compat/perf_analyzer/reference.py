"""Writes the reference page of the flags: `python -m alipes.compat.perf_analyzer.reference`, in a checkout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from alipes.compat.perf_analyzer.options import OPTIONS, Option

__all__ = ["NAME", "page"]

NAME: Final = "cli-perf-analyzer.md"

_HEAD: Final = """\
# Flags of perf_analyzer

<!-- Written by `make docs`; change python/alipes/compat/perf_analyzer/options.py, not this page. -->

The flags of `alipes perf_analyzer`; [perf_analyzer's command line](../how-to/perf-analyzer.md) shows it at work. A long
name may be abbreviated to any beginning that no other flag has. If a flag that may not be repeated is given twice, the
last value counts. Words that are neither a flag nor its value are ignored.

**served**: the flag does what the table says. **older**: another flag has replaced it, and it still works. **refused**:
the command ends with an error that names the flag, and exit status 3.

| Flag | Status | What it does, or why not |
|---|---|---|
"""


def page() -> str:
    """The page."""
    return _HEAD + "".join(f"{row}\n" for row in _rows())


def _rows() -> Iterator[str]:
    for option in OPTIONS:
        yield f"| `{_cell(option.shown)}` | {_status(option)} | {_cell(option.about)} |"


def _status(option: Option) -> str:
    if not option.is_served:
        return "refused"
    return "older" if option.is_old else "served"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    Path("docs", "reference", NAME).write_text(page(), encoding="utf-8")
