"""`alipes deploy image`: the server as a container image."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from alipes.cli.failures import CommandFailed, perform

__all__ = ["HELP", "image"]

HELP: Final = """Write the server as a container image.

\b
  alipes deploy image --dockerfile > Dockerfile
"""


def image(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="Where to write it; standard output if absent."),
    ] = None,
    dockerfile: Annotated[bool, typer.Option("--dockerfile", help="Write a Dockerfile, to build with Docker.")] = False,
) -> int:
    """Write a container image; `HELP` says how."""

    def action() -> int:
        from alipes.deploy.image.dockerfile import dockerfile as written

        _write_text(written(), output)
        return 0

    return perform(action)


def _write_text(text: str, output: Path | None) -> None:
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed("name a file that can be written", f"'{output}': {error.strerror}") from error
