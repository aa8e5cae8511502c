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

What `alipes perf_analyzer` takes, as [its page](../how-to/perf-analyzer.md) shows. Long names may be cut short as long
as one flag has them; of a flag that stands twice, the last counts; what is no flag is left alone.

**served**: does what it says. **older**: another flag took its place, and it still works. **refused**: an error that
names it, with exit status 3.

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
