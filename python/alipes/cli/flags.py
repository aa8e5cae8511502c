"""The help of `alipes serve`: every flag in a table, grouped, with what it does here."""

from __future__ import annotations

from itertools import groupby

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alipes.config.flags import FLAGS, Flag

_COLOURS = {"works": "green", "ignored": "yellow", "refused": "red"}


def print_flags(console: Console | None = None) -> None:
    """Prints the flags: their default, their status, and what they do or why they do not."""
    console = console if console is not None else Console()
    console.print("[bold]alipes serve[/] [REPOSITORY ...] [FLAGS]", highlight=False)
    console.print(
        "Serves the models of one or more repositories. The flags are Triton's: [green]works[/], "
        "[yellow]ignored[/] with a notice, or [red]refused[/] by name.",
        highlight=False,
    )
    for group, flags in groupby(FLAGS, key=lambda flag: flag.group):
        console.print(_table(group, list(flags)))


def _table(group: str, flags: list[Flag]) -> Table:
    table = Table(title=group, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, expand=True)
    table.add_column("flag", no_wrap=True, style="cyan")
    table.add_column("default", overflow="fold", max_width=16)
    table.add_column("status", no_wrap=True)
    table.add_column("what it does", ratio=1)
    for flag in flags:
        status = f"[{_COLOURS[flag.status]}]{flag.status}[/]"
        table.add_row(f"--{flag.name}", escape(_default(flag)), status, escape(_text(flag)))
    return table


def _default(flag: Flag) -> str:
    if flag.default in (None, "", ()):
        return ""
    return str(flag.default).lower() if isinstance(flag.default, bool) else str(flag.default)


def _text(flag: Flag) -> str:
    words = f"{' | '.join(flag.choices)}. " if flag.choices else ""
    note = f" ({flag.note})" if flag.note else ""
    return f"{words}{flag.help}{note}"
