"""The verbs that ask a running server, and those that look into a repository: registered in one place."""

from __future__ import annotations

import typer

from alipes.cli.infer import NUMBERS_FOLLOW, ask, infer
from alipes.cli.models import models_app
from alipes.cli.repositories import repo_app
from alipes.cli.statistics import stats

__all__ = ["add_verbs"]


def add_verbs(app: typer.Typer) -> None:
    """Adds them to the command."""
    app.command(context_settings=NUMBERS_FOLLOW, short_help="Ask a model, and print its outputs.")(infer)
    app.command(context_settings=NUMBERS_FOLLOW, short_help="Call a function that is served, print its value.")(ask)
    app.command(short_help="What the models of a running server have done.")(stats)
    app.add_typer(models_app, name="models")
    app.add_typer(repo_app, name="repo")
