"""`alipes advise`: which stage limits the models of a running server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Final

import typer

from alipes.cli.certificates import tls_of, with_certificate
from alipes.cli.connection import ApiKey, Header, TlsRoots, Url, default_address, one_address, read_headers, with_scheme
from alipes.cli.failures import UsageFailed, perform
from alipes.leaving import leaving_on_signals

if TYPE_CHECKING:
    from alipes.advise import Advice

HELP: Final = """Say which stage limits the models of a running server, what to change, and what that would bring.

\b
  alipes advise                    all models that are asked while it looks
  alipes advise MODEL --try        try the first change under this traffic

The server's statistics are read twice, --seconds apart, while its clients send requests. --try needs a server that
loads by name (--model-control-mode explicit).
"""
_INDENT: Final = " " * len("  brings: ")


@with_certificate
def advise(  # noqa: PLR0913, PLR0917  # one parameter is one option
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="One model; all that are asked by default.")
    ] = "",
    url: Url = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, max=3600, metavar="SECONDS", help="How long to look.")
    ] = 5.0,
    metrics_url: Annotated[
        str | None,
        typer.Option(
            "--metrics-url", metavar="URL", show_default=False, help="Its metrics; usually two ports above HTTP."
        ),
    ] = None,
    try_change: Annotated[
        bool, typer.Option("--try", help="Try the first change; the server goes back at the end, whatever happens.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="With --try: leave it where it made nothing slower.")] = False,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say which stage limits the models of a running server, what to change, and what that would bring.

    The server is asked for its statistics twice while its clients ask it. --try needs a server that loads by name
    (--model-control-mode explicit).
    """

    def action() -> int:
        from alipes.advise import advise as look

        if keep and not try_change:
            raise UsageFailed("give --keep with --try")
        tls = tls_of(tls_roots)
        one = one_address(url, "a server's stages are its own")
        advice = look(
            with_scheme(one or default_address(), encrypted=tls is not None),
            model,
            seconds=seconds,
            metrics_url=metrics_url,
            try_change=try_change,
            keep=keep,
            headers=read_headers(header, api_key),
            tls=tls,
        )
        if as_json:
            tried = str(advice.attempt) if advice.attempt is not None else None
            print(json.dumps({"models": advice.rows(), "tried": tried}, indent=2))
        else:
            _print(advice, try_change=try_change)
        return 0

    with leaving_on_signals():
        return perform(action)


def _print(advice: Advice, *, try_change: bool) -> None:
    from alipes.cli.sentences import print_sentence

    for line in str(advice).splitlines():
        print_sentence(line, indent=_INDENT if line.startswith(" ") else "  ")
    if try_change and advice.findings and advice.attempt is None:
        print("tried: nothing, since no advice is a change of the configuration")
