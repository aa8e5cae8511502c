"""`alipes batch`: inference over many files, one module for each command; listed at the foot."""

from __future__ import annotations

from typing import Final

import typer

from alipes.cli.batch.merge import merge
from alipes.cli.batch.run import HELP as RUN_HELP
from alipes.cli.batch.run import run
from alipes.cli.batch.status import status
from alipes.cli.grouped_help import GroupedCommand

__all__ = ["batch_app"]

batch_app: Final = typer.Typer(help="Have servers answer what many files hold.")

batch_app.command(cls=GroupedCommand, help=RUN_HELP, short_help="Run, or go on with what is missing.")(run)
batch_app.command(short_help="Show how far a run is, and what its clients do.")(status)
batch_app.command(short_help="Write all results into one file.")(merge)
