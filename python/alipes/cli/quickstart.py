"""`alipes quickstart`: watch a model read handwritten digits over HTTP and gRPC, without any set-up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def quickstart(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the server running until Ctrl-C.")] = False,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="Length of the load, in seconds.")
    ] = 5.0,
    copy_to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Copy the model, its scans and a request there, and end.")
    ] = None,
) -> int:
    """Watch a model read handwritten digits over HTTP and gRPC."""
    if copy_to is not None:
        return _copy(copy_to)
    from alipes.quickstart import tour
    from alipes.quickstart.screen import Screen

    return tour.run(Screen(), seconds, keep=keep)


def _copy(folder: Path) -> int:
    from alipes.errors import RepositoryError
    from alipes.quickstart import digits, next_steps

    try:
        digits.copy_to(folder)
    except (RepositoryError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"copied the digit model to {folder}; now type: {next_steps.serve(folder / 'models')}")
    return 0
