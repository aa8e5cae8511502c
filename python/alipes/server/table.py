"""The table of models that a start ends with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from alipes.types import IndexEntry

HEADINGS = ("Model", "Version", "Status")


def model_rows(entries: Iterable[IndexEntry]) -> list[tuple[str, str, str]]:
    """One row a model version: name, version, state with its reason. Line ends of a reason become spaces."""
    return [(entry.name, entry.version or "-", _status(entry)) for entry in entries]


def model_documents(entries: Iterable[IndexEntry]) -> list[dict[str, Any]]:
    """What a log of documents has in the place of the table: one for each model version, or one that there is none."""
    return [_document(entry) for entry in entries] or [{"message": "no model was loaded"}]


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in plain characters, as Triton logs it. Costs no import: a server without terminal starts with it."""
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(headings, *rows, strict=True)]
    rule = "+".join(["", *("-" * (width + 2) for width in widths), ""])
    lines = [rule, _line(headings, widths), rule]
    lines += [_line(row, widths) for row in rows]
    lines.append(rule)
    return "\n".join(lines)


def print_table(entries: Iterable[IndexEntry]) -> None:
    """Draws the table on the terminal behind standard error; colours say which models serve."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for heading in ("Model", "Version", "State", "Reason"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        state = entry.state or ""
        colour = "green" if state == "READY" else "red"
        why = entry.advice or entry.reason
        table.add_row(_plain(entry.name), entry.version or "-", f"[{colour}]{state or '-'}[/]", _plain(why))
    Console(stderr=True).print(table)


def _document(entry: IndexEntry) -> dict[str, Any]:
    version = f" version {entry.version}" if entry.version else ""
    fields = {"model": entry.name, "version": entry.version, "state": str(entry.state or ""), "reason": entry.reason}
    message = f"model '{entry.name}'{version} is {_status(entry) or 'not loaded'}"
    return {"message": message, **{name: value for name, value in fields.items() if value}}


def _status(entry: IndexEntry) -> str:
    state = str(entry.state or "")
    why = " ".join((entry.advice or entry.reason).split())
    return ": ".join(part for part in (state, why) if part)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"| {cell:<{width}} " for cell, width in zip(cells, widths, strict=True)) + "|"


def _plain(text: str) -> str:
    """Text that rich does not read as markup."""
    from rich.markup import escape

    return escape(visible(text))


def visible(text: str) -> str:
    """The text on one line: what a terminal would not print as a character, such as a line end, is spelled out."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
