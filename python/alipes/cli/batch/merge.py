"""`alipes batch merge`: one file of all results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from alipes.cli.amounts import count
from alipes.cli.failures import perform

__all__ = ["merge"]


def merge(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False, help="Folder of a finished run.")],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", show_default=False, help="Where to: .npz, .npy, .h5, .parquet, .jsonl or .zip."),
    ],
    replace: Annotated[bool, typer.Option("--replace", help="Replace a file that is there.")] = False,
) -> int:
    """Write all results into one file, in the order of the inputs."""

    def action() -> int:
        from alipes import batch

        print(f"{count(batch.merge(folder, file, replace=replace), 'row')} in {file}")
        return 0

    return perform(action)
