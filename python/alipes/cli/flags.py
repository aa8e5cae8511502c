"""The help of `alipes serve`: the flags that most people use, or all of them, as plain text."""

from __future__ import annotations

import os
import shutil
import sys
from itertools import groupby
from typing import Final

import click

from alipes.config.command_line import HELP_FLAGS
from alipes.config.flags import SERVE_FLAGS, Flag, environment_name

_WIDEST: Final = 100
_NARROWEST: Final = 60
_FIRST_COLUMN: Final = 30

_HEAD: Final = """\
Serve the models of folders, buckets or apps over HTTP and gRPC, until Ctrl-C.
REPOSITORY is a folder that holds a folder for each model, an address such as
s3://bucket/models, an app.py with @alipes.model, or the file of one model.
alipes.toml in the current folder may name it, and any flag.

Examples:
  alipes serve models
  alipes serve models --port 9000 -v
  alipes serve app.py --reload
"""

_STATUS: Final = """
A flag works as it says, unless it is marked: "Ignored" does nothing here and
says so in the log, "Refused" ends the start unless the value is the default.
"""

_COMMON_HEADINGS: Final = {
    "Everyday": "Server",
    "Server": "Server",
    "Access": "Endpoints",
    "HTTP": "Endpoints",
    "gRPC": "Endpoints",
    "Metrics": "Endpoints",
}
"""Heading in the table -> heading on the short page, which has few flags of each."""

_METAVARS: Final = {
    "bool": "true|false",
    "level": "LEVEL",
    "int": "NUMBER",
    "seconds": "SECONDS",
    "str": "TEXT",
    "list": "TEXT",
}


def print_flags(*, every: bool = False) -> None:
    """Prints the page: each flag with what it does, its default and its environment variable.

    Args:
        every: Whether to show every flag, with its status, or those alone that most people use.
    """
    print(page(every=every, width=shutil.get_terminal_size().columns, bold=_has_colours()), end="")


def page(*, every: bool, width: int, bold: bool = False) -> str:
    """The text of the page.

    Args:
        every: Whether to show every flag, or those alone that most people use.
        width: Columns that there are.
        bold: Whether headings stand out.
    """
    text = click.HelpFormatter(width=max(_NARROWEST, min(width, _WIDEST)), max_width=_WIDEST)
    text.write(_bold("Usage: alipes serve [FLAGS] REPOSITORY...\n\n", bold))
    text.write(f"{_HEAD}{_STATUS if every else ''}\n")
    for heading, flags in _groups(every=every).items():
        text.write(_bold(f"{heading}:\n", bold))
        text.indent()
        text.write_dl([(_written(flag), _describe(flag, every=every)) for flag in flags], _FIRST_COLUMN)
        text.dedent()
        text.write("\n")
    text.write(_bold("Help:\n", bold))
    text.indent()
    text.write_dl([(", ".join(words), does) for words, does in HELP_FLAGS.items()], _FIRST_COLUMN)
    text.dedent()
    return text.getvalue()


def _groups(*, every: bool) -> dict[str, list[Flag]]:
    if every:
        return {group: list(flags) for group, flags in groupby(SERVE_FLAGS, key=lambda flag: flag.group)}
    groups: dict[str, list[Flag]] = {}
    for flag in SERVE_FLAGS:
        if flag.common:
            groups.setdefault(_COMMON_HEADINGS.get(flag.group, flag.group), []).append(flag)
    return groups


def _written(flag: Flag) -> str:
    if flag.short:
        return f"-{flag.short}, --{flag.name}"
    if flag.kind == "choice":
        return f"--{flag.name} {'|'.join(flag.choices)}"
    return f"--{flag.name} {flag.path.upper() or _METAVARS[flag.kind]}"


def _describe(flag: Flag, *, every: bool) -> str:
    default = "" if flag.short or flag.default in (None, "", ()) else f"default: {_word(flag)}"
    known = "; ".join(part for part in (default, environment_name(flag)) if part)
    again = " May be repeated." if flag.kind == "list" else ""
    if not every:
        first, _, _ = flag.help.partition(". ")
        return f"{first.rstrip('.')}.{again}  [{known}]"
    status = f" {flag.status.capitalize()}: {flag.note}." if flag.note else ""
    return f"{flag.help}{again}{status}  [{known}]"


def _word(flag: Flag) -> str:
    if isinstance(flag.default, bool):
        return str(flag.default).lower()
    return f"{flag.default:g}" if isinstance(flag.default, float) else str(flag.default)


def _has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _bold(text: str, bold: bool) -> str:
    return click.style(text, bold=True) if bold else text
