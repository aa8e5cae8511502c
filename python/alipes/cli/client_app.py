"""`alipes client`: code that asks a server, written from what the server says of itself."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from alipes.cli.certificates import with_certificate
from alipes.cli.connection import ApiKey, Header, TlsRoots, Url, connect, read_headers
from alipes.cli.failures import CommandFailed, UsageFailed, perform
from alipes.cli.written import Output, write

__all__ = ["client_app"]

client_app = typer.Typer(help="Write code that asks a server.", no_args_is_help=True)

_GENERATE_HELP: Final = """Write a Python module with a typed method for each function and model of a running server.

\b
  alipes client generate localhost:8000 -o served.py
  python -c 'from served import Models; print(Models().louder([1, 2]))'
"""


@client_app.command(help=_GENERATE_HELP, short_help="Write a typed Python module for a running server.")
@with_certificate
def generate(  # noqa: PLR0913, PLR0917  # one parameter is one option
    server: Annotated[
        str | None,
        typer.Argument(
            metavar="URL", show_default=False, help="Where the server is, as --url of other commands takes it."
        ),
    ] = None,
    url: Url = None,
    output: Output = None,
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
        with connect(
            url if server is None else [server, *(url or ())], read_headers(header, api_key), tls_roots
        ) as client:
            # Of models that are ready; the index may be for those alone who may load, as that of a script's functions.
            names = {str(row["name"]) for row in client.statistics()}
            signatures = [client.signature(model) for model in sorted(names)]
            text = client_module(signatures, str(client.endpoint), name)
        if not signatures:
            raise CommandFailed("load a model, or wait until one is ready", f"{client.endpoint} has none that is")
        write(text, output)
        if output is not None:
            print(f"wrote {output}: from {output.stem} import {name}")
        return 0

    return perform(action)
