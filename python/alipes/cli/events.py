"""What happened, newest first, as a table: how long ago, and a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table

from alipes.cli.amounts import span


def events(title: str, rows: Iterable[tuple[Mapping[str, Any], str]]) -> Table:
    """A table of what the server says of each, which has `ago_us`, and of its sentence."""
    table = Table(
        title=f"{title}, newest first",
        title_justify="left",
        box=None,
        padding=(0, 2),
        title_style="dim",
        show_header=False,
    )
    table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column()
    for event, sentence in rows:
        table.add_row(span(event["ago_us"]), sentence)
    return table
