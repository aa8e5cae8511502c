"""`alipes models`: list, load and unload the models of a running server, and divide their requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from alipes.cli.certificates import with_certificate
from alipes.cli.columns import print_columns
from alipes.cli.connection import ApiKey, Header, TlsRoots, Url, connect, read_headers
from alipes.cli.failures import CommandFailed, perform
from alipes.cli.traffic import traffic
from alipes.config.nearest import nearest_first
from alipes.errors import InferError
from alipes.types import ModelState

if TYPE_CHECKING:
    from alipes.client import Client
    from alipes.types import IndexEntry

__all__ = ["HEADINGS", "entry_document", "index_rows", "models_app"]

models_app = typer.Typer(help="List, load and unload the models of a running server.", no_args_is_help=True)
models_app.command()(traffic)

HEADINGS: Final = ("model", "version", "state", "reason")

_MODE: Final = "explicit model load / unload is not allowed"
"""What a server says that loads its models itself. Source: Triton."""

_NOTHING: Final = "failed to poll from model repository"
"""What a server says of a folder without a model in it, as of one that is not there. Source: Triton."""

Names = Annotated[list[str], typer.Argument(metavar="MODEL", help="Names of models.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LoadTimeout = Annotated[
    float | None,
    typer.Option("--timeout", min=0.001, metavar="SECONDS", show_default=False, help="Longest wait; none if left out."),
]


@models_app.command("list")
@with_certificate
def list_models(
    url: Url = None,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    as_json: AsJson = False,
) -> int:
    """Print each model with its versions, their state, and why one is not ready."""

    def action() -> int:
        with connect(url, read_headers(header, api_key), tls_roots) as client:
            entries = client.models()
        if as_json:
            print(json.dumps([entry_document(entry) for entry in entries], indent=2))
        elif entries:
            print_columns(HEADINGS, index_rows(entries))
        else:
            print("the server has no models")
        return 0

    return perform(action)


@models_app.command()
@with_certificate
def load(
    models: Names,
    url: Url = None,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    timeout: LoadTimeout = None,
) -> int:
    """Load models, or load them again with what their folders hold now."""

    def action() -> int:
        with connect(url, read_headers(header, api_key), tls_roots) as client:
            for model in models:
                _control(client, model, lambda name: client.load(name, timeout_s=timeout))
                _print_loaded(model, client.models())
        return 0

    return perform(action)


@models_app.command()
@with_certificate
def unload(  # noqa: PLR0913, PLR0917  # one parameter is one flag
    models: Names,
    url: Url = None,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    dependents: Annotated[bool, typer.Option("--dependents", help="Unload too what an ensemble alone uses.")] = False,
    timeout: LoadTimeout = None,
) -> int:
    """Unload models, after the requests that they have."""

    def action() -> int:
        with connect(url, read_headers(header, api_key), tls_roots) as client:
            for model in models:
                _control(client, model, lambda name: client.unload(name, dependents=dependents, timeout_s=timeout))
                print(f"unloaded {model}")
        return 0

    return perform(action)


def index_rows(entries: Iterable[IndexEntry]) -> list[tuple[str, str, str, str]]:
    """One row for each version of a model."""
    return [(one.name, one.version, str(one.state or "not loaded"), one.reason) for one in entries]


def entry_document(entry: IndexEntry) -> dict[str, str]:
    """A line of the repository index, as JSON has it."""
    return {
        "name": entry.name,
        "version": entry.version,
        "state": str(entry.state or ""),
        "reason": entry.reason,
    }


def _control(client: Client, model: str, act: Callable[[str], None]) -> None:
    """Loads or unloads a model; an error says what to do.

    Raises:
        CommandFailed: If the server refuses, and why is known.
    """
    known = {entry.name for entry in client.models()}
    if known and model not in known:
        raise CommandFailed(f"the server has {nearest_first(model, known)}", f"there is no model '{model}'")
    try:
        act(model)
    except InferError as error:
        if _MODE in str(error):
            raise CommandFailed(
                "start the server with --model-control-mode explicit to load and unload models by name",
                f"this one loads what its repository holds, '{model}' too",
            ) from error
        if _NOTHING in str(error):
            raise CommandFailed(
                f"look at its folder with `alipes repo list`: there is nothing in it that could be loaded as '{model}'",
                str(error),
            ) from error
        raise


def _print_loaded(model: str, entries: Sequence[IndexEntry]) -> None:
    versions = [one.version for one in entries if one.name == model and one.state == ModelState.READY]
    print(
        f"loaded {model}, version{'s' * (len(versions) > 1)} {', '.join(versions)}" if versions else f"loaded {model}"
    )
