"""`alipes client`: code that asks a server, written from what the server says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from alipes.cli.certificates import with_certificate
from alipes.cli.connection import ApiKey, Header, TlsRoots, connect, read_headers
from alipes.cli.failures import CommandFailed, UsageFailed, perform

__all__ = ["client_app"]

client_app = typer.Typer(help="Write code that asks a server.", no_args_is_help=True)

_GENERATE_HELP: Final = """Write a Python module with a typed method for each function and model of a running server.

\b
  alipes client generate localhost:8000 -o served.py
  python -c 'from served import Models; print(Models().louder([1, 2]))'
"""


@client_app.command(help=_GENERATE_HELP, short_help="Write a typed Python module for a running server.")
@with_certificate
def generate(
    server: Annotated[
        str | None,
        typer.Argument(
            metavar="URL", show_default=False, help="Where the server is, as --url of other commands takes it."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", show_default=False, help="Where to write it; else printed."),
    ] = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the class.")] = "Models",
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
) -> int:
    """Write a module; the help says how."""

    def action() -> int:
        from alipes.client.client_module import client_module

        if not name.isidentifier():
            raise UsageFailed("give --name a name that a class can have", f"'{name}' is none")
        with connect(None if server is None else [server], read_headers(header, api_key), tls_roots) as client:
            # Of models that are ready; the index may be for those alone who may load, as that of a script's functions.
            names = {str(row["name"]) for row in client.statistics()}
            signatures = [client.signature(model) for model in sorted(names)]
            text = client_module(signatures, str(client.endpoint), name)
        if not signatures:
            raise CommandFailed("load a model, or wait until one is ready", f"{client.endpoint} has none that is")
        if output is None:
            print(text, end="")
            return 0
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandFailed(f"choose another --output: {output} cannot be written", str(error)) from error
        print(f"wrote {output}: from {output.stem} import {name}")
        return 0

    return perform(action)
