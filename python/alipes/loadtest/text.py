"""Results as text: a table in columns, and below it what has to be known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from alipes.loadtest.cells import (
    HEADINGS,
    STREAM_HEADINGS,
    comparison_headings,
    comparison_rows,
    level_rows,
    stream_rows,
)

if TYPE_CHECKING:
    from alipes.loadtest.comparison import Comparison
    from alipes.loadtest.report import Report

__all__ = ["aligned", "comparison_text", "report_text"]


def report_text(report: Report) -> str:
    """The table of the levels, that of their streams where there are some, and their notes."""
    lines = aligned(HEADINGS, [row for level in report.levels for row in level_rows(level)], right=HEADINGS[:-1])
    if streams := [row for level in report.levels for row in stream_rows(level)]:
        lines += aligned(STREAM_HEADINGS, streams, right=STREAM_HEADINGS)
    return "\n".join([*lines, *(f"{level.pace}: {note}" for level in report.levels for note in level.notes())])


def comparison_text(comparison: Comparison) -> str:
    """The table of both sides and their ratios, and the conclusions."""
    headings = comparison_headings(comparison)
    lines = aligned(headings, comparison_rows(comparison), right=headings[1:])
    return "\n".join([*lines, "", *(f"{sentence}." for sentence in comparison.conclusions())])


def aligned(headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> list[str]:
    """Rows below their headings as lines, with two spaces or more between columns.

    Args:
        headings: One for each column; a column whose cells are all empty is left out.
        rows: Their cells, without line ends.
        right: Headings of the columns that are aligned at their right ends.
    """
    shown = [index for index in range(len(headings)) if not rows or any(row[index] for row in rows)]
    lines = [[line[index] for index in shown] for line in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [str.rjust if headings[index] in right else str.ljust for index in shown]
    return [
        "  ".join(side(cell, width) for side, cell, width in zip(sides, line, widths, strict=True)).rstrip()
        for line in lines
    ]
