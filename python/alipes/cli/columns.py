"""Rows for people and for pipes: a table on a terminal, plain columns elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from alipes.loadtest.text import aligned

__all__ = ["print_columns", "visible"]

_COLOURS: Final = {"READY": "green", "UNAVAILABLE": "red", "LOADING": "yellow", "UNLOADING": "yellow"}

_GAP: Final = 2
"""Spaces between two columns of a table."""


def print_columns(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    spare: Sequence[str] = (),
    console: Console | None = None,
) -> None:
    """Prints rows below their headings.

    A pipe gets each row as one line, however long, with two spaces or more between columns. Columns without any text
    are left out.

    Args:
        headings: One for each column.
        rows: Their cells.
        right: Headings of the columns that are aligned at their right ends.
        spare: Headings of the columns that a narrow terminal can do without, the least needed first. Without any, the
            last column is cut into lines there.
        console: Where to print; standard output by default.
    """
    shown = [index for index in range(len(headings)) if not rows or any(row[index] for row in rows)]
    names = [headings[index] for index in shown]
    cells = [[row[index] for index in shown] for row in rows]
    console = console if console is not None else Console()
    if console.is_terminal:
        names, cells = _fitting(names, cells, spare, console.width)
        _print_table(names, cells, right, console)
    else:
        _print_plain(names, cells, right)


def visible(text: str) -> str:
    """The text on one line: line ends become spaces, other characters that are not printable are spelled out."""
    line = " ".join(text.split())
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in line)


def _fitting(
    names: list[str], rows: list[list[str]], spare: Sequence[str], width: int
) -> tuple[list[str], list[list[str]]]:
    """The columns, without as many spare ones as it takes to fit into a width."""
    columns = list(range(len(names)))
    for name in spare:
        widths = [max(map(cell_len, (names[index], *(row[index] for row in rows)))) for index in columns]
        if sum(widths) + _GAP * (len(columns) - 1) <= width:
            break
        columns = [index for index in columns if names[index] != name]
    return [names[index] for index in columns], [[row[index] for index in columns] for row in rows]


def _print_table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str], console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(names):
        # Names and numbers stay whole; what is cut into lines is the text at the end.
        last = index == len(names) - 1
        table.add_column(name, justify="right" if name in right else "left", overflow="fold", no_wrap=not last)
    for row in rows:
        table.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in row))
    console.print(table)


def _print_plain(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    print("\n".join(aligned(names, [[visible(cell) for cell in row] for row in rows], right=right)))
