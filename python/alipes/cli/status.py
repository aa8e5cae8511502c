"""`alipes status`: whether a server is ready, which version it is, and what its models do."""

from __future__ import annotations

import json
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.request import Request, urlopen

import typer

from alipes.cli.certificates import with_certificate
from alipes.cli.columns import print_columns
from alipes.cli.connection import (
    HANDLE,
    ApiKey,
    Header,
    TlsRoots,
    Url,
    connect,
    endpoint_of,
    launched,
    one_address,
    read_headers,
)
from alipes.cli.failures import UsageFailed, perform
from alipes.cli.models import HEADINGS, entry_document, index_rows
from alipes.errors import AlipesError

if TYPE_CHECKING:
    from alipes.client import Client
    from alipes.serve.detached import Detached

__all__ = ["show", "status"]

_TIMEOUT_S: Final = 5.0

_OURS: Final = "alipes/"
"""What our own servers begin the header `Server` with."""


def _handles(incomplete: str) -> list[str]:
    """The files that may be handles, for the completion of a shell."""
    return [str(path) for path in sorted(Path().glob("*.json")) if path.name.startswith(incomplete)]


@with_certificate
def status(
    server: Annotated[
        str | None,
        typer.Argument(
            metavar="SERVER",
            show_default=False,
            help=f"The file that `alipes launch` wrote, or an address as --url takes it; {HANDLE} by default.",
            autocompletion=_handles,
        ),
    ] = None,
    url: Url = None,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Tell whether a server is ready, where it is, its version and its models. Succeeds where it is ready."""

    def action() -> int:
        handle, address = _find(server, one_address(url, "a status is that of one server"))
        if handle is None:
            return _report(address, read_headers(header, api_key), tls_roots, as_json=as_json)
        with handle:
            state = handle.status()
            if not as_json:
                show(handle)
            if state == "ready":
                return _report(
                    endpoint_of(handle), read_headers(header, api_key), tls_roots, as_json=as_json, headed=True
                )
            if as_json:
                print(json.dumps({"ready": False, "state": state}, indent=2))
            return 1

    return perform(action)


def show(server: Detached) -> int:
    """Prints where a server is and whether it is ready; returns the exit code that says so."""
    state = server.status()
    print(f"{server.name} (process {server.pid}) is {state}")
    for endpoint in ("http", "grpc", "metrics"):
        try:
            print(f"  {endpoint:8}{getattr(server, endpoint)}")
        except AlipesError:  # its flags close this endpoint
            continue
    print(f"  {'log':8}{server.log_path}")
    return 0 if state == "ready" else 1


def _find(server: str | None, url: str | None) -> tuple[Detached | None, str | None]:
    """The server of a handle, or an address."""
    if server is not None and url is not None:
        raise UsageFailed("name the server once, as SERVER or by --url", f"it is {server!r} and {url!r}")
    if url is not None:
        return None, url
    if server is None:
        return launched(), None
    if "://" not in server and (Path(server).exists() or server.endswith(".json") or "/" in server):
        from alipes.serve.detached import attach

        return attach(server), None
    return None, server


def _report(
    address: str | None,
    headers: dict[str, str],
    tls_roots: Path | None,
    *,
    as_json: bool,
    headed: bool = False,
) -> int:
    """Prints what a server says of itself; `headed` where its state and its address are printed already."""
    with connect(None if address is None else [address], headers, tls_roots, _TIMEOUT_S) as client:
        name = _server_name(client, headers)
        ready, entries = client.is_ready(), client.models()
    if as_json:
        models = [entry_document(entry) for entry in entries]
        document = {"address": str(client.endpoint), "ready": ready, "server": name, "models": models}
        print(json.dumps(document, indent=2))
        return 0 if ready else 1
    if not headed:
        print(f"{client.endpoint} is {'ready' if ready else 'live, and not ready'}")
    print(f"  {'version':8}{name}")
    if entries:
        print_columns(HEADINGS, index_rows(entries))
    else:
        print("  it has no models")
    return 0 if ready else 1


def _server_name(client: Client, headers: dict[str, str]) -> str:
    """Name and version of what serves.

    Servers of ours give their own version in a header, for the metadata say what Triton's clients look for.
    """
    metadata = client.server_metadata()
    names = [f"{metadata.get('name', 'an unknown server')} {metadata.get('version', '')}".strip()]
    product = _product(client, headers)
    if product.startswith(_OURS):
        names.insert(0, f"alipes {product.removeprefix(_OURS)}, to its clients")
    return " ".join(names)


def _product(client: Client, headers: dict[str, str]) -> str:
    endpoint = client.endpoint
    if endpoint.wire != "http" or endpoint.tls is not None or endpoint.address.startswith("unix:"):
        return ""
    try:
        with urlopen(Request(f"http://{endpoint.address}/v2", headers=headers), timeout=_TIMEOUT_S) as answer:
            return str(answer.headers.get("Server", ""))
    except (OSError, HTTPException):
        return ""
