"""A text that a command writes: printed, or into the file of `--output`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from alipes.cli.failures import CommandFailed

__all__ = ["Output", "write"]

Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="PATH", show_default=False, help="Where to write it; else it is printed."),
]


def write(text: str, output: Path | None) -> None:
    """Prints a text, or writes it into a file.

    Raises:
        CommandFailed: If the file cannot be written.
    """
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"choose another --output: {output} cannot be written", str(error)) from error
