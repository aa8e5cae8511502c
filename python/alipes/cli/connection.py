"""The server that a verb talks to: the options that say where it is, and a client for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from alipes.cli.certificates import tls_of
from alipes.cli.failures import CommandFailed, UsageFailed
from alipes.errors import AlipesError, ConfigError, TlsError, TransportError
from alipes.local_ports import resolve

if TYPE_CHECKING:
    from alipes.client import Client
    from alipes.serve.detached import Detached

__all__ = [
    "DEFAULT_ADDRESS",
    "HANDLE",
    "ApiKey",
    "Header",
    "Timeout",
    "TlsRoots",
    "Url",
    "addresses_of",
    "connect",
    "default_address",
    "endpoint_of",
    "hold_key",
    "http_url",
    "launched",
    "one_address",
    "read_headers",
    "with_scheme",
]

DEFAULT_ADDRESS: Final = "localhost:8000"
HANDLE: Final = "alipes-server.json"
"""The file that `alipes launch` writes unless it is told another."""

_DEFAULT_PORT: Final = 8000

Url = Annotated[
    list[str] | None,
    typer.Option(
        "--url",
        metavar="ADDRESS",
        show_default=False,
        help="Where the server is: HOST:PORT, http://, https://, grpc://, grpcs:// or unix:PATH. Several, with commas "
        "between them or each with --url, stand for a fleet. By default the server that `alipes launch` started in "
        "this folder, else localhost:8000.",
    ),
]
Header = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME:VALUE", help="A header that the server asks for; any number."),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        metavar="KEY",
        show_default=False,
        help="The key that the server asks for; left out, the variable ALIPES_API_KEY, which other users cannot see.",
    ),
]
TlsRoots = Annotated[
    Path | None,
    typer.Option(
        "--tls-roots", metavar="FILE", show_default=False, help="Certificates to trust; the system's if left out."
    ),
]
Timeout = Annotated[float, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Longest wait for the answer.")]


def connect(
    url: Sequence[str] | None,
    headers: Mapping[str, str],
    tls_roots: Path | None = None,
    timeout_s: float | None = 60.0,
) -> Client:
    """A client for the server that the options name, or for several; `headers` has the key, if there is one.

    Raises:
        CommandFailed: If what answers there is no model server.
        UsageFailed: If an option cannot be read.
    """
    from alipes.client import Client, Retry

    tls = tls_of(tls_roots)
    addresses = addresses_of(url, encrypted=tls is not None)
    try:
        # A person decides whether to try again.
        once = Retry(times=0)
        return Client(addresses, timeout_s=timeout_s, retry=once, headers=headers, api_key="", tls=tls)
    except TlsError:
        raise
    except (TransportError, ConfigError) as error:
        if isinstance(error, ConfigError) and error.key != "address":
            raise
        raise UsageFailed(
            "write --url as HOST:PORT, http://, https://, grpc://, grpcs:// or unix:PATH", str(error)
        ) from error


def addresses_of(url: Sequence[str] | None, *, encrypted: bool) -> list[str]:
    """The addresses that --url names, each with the protocol that is spoken there.

    Raises:
        CommandFailed: If what answers at one is no model server.
        UsageFailed: If there is an empty one, or one is there twice.
    """
    from alipes.client.servers.addresses import read_addresses

    try:
        words = read_addresses(list(url)) if url else [default_address()]
    except ConfigError as error:
        raise UsageFailed("write --url ADDRESS, or --url ADDRESS,ADDRESS for several", str(error)) from error
    return [with_scheme(word, encrypted=encrypted) for word in words]


def one_address(url: Sequence[str] | None, why: str) -> str | None:
    """The address that --url names, for a command of one server; `None` where it is left out.

    Raises:
        UsageFailed: If it names several.
    """
    from alipes.client.servers.addresses import are_several

    if not url:
        return None
    if len(url) > 1 or are_several(url[0]):
        raise UsageFailed("give --url one address", why)
    return url[0]


def http_url(url: str | None) -> str:
    """Where the server that --url names answers over HTTP: `http://HOST:PORT`.

    Raises:
        CommandFailed: If it speaks gRPC there, or listens at a Unix socket.
    """
    address = with_scheme(url or default_address(), encrypted=False)
    scheme, _, rest = address.partition("://")
    if scheme in ("http", "https") and not rest.startswith("unix:"):
        return f"{scheme}://{resolve(rest)}".rstrip("/")
    raise CommandFailed(
        "give --url the HTTP port of the server (usually 8000)", f"{address} does not speak HTTP over TCP"
    )


def default_address() -> str:
    """The server that was launched from this folder and has not ended, else port 8000 of this machine."""
    server = launched()
    if server is None:
        return DEFAULT_ADDRESS
    with server:
        return endpoint_of(server)


def endpoint_of(server: Detached) -> str:
    """Where a launched server is asked.

    Raises:
        CommandFailed: If it has neither HTTP nor gRPC.
    """
    for scheme in ("http", "grpc"):
        try:
            return f"{scheme}://{getattr(server, scheme)}"
        except AlipesError:  # its flags close this endpoint
            continue
    raise CommandFailed("start it again with HTTP or gRPC", f"the server {server.name} has neither")


def launched() -> Detached | None:
    """The running server whose handle is in this folder."""
    if not Path(HANDLE).is_file():
        return None
    from alipes.serve.detached import attach

    try:
        server = attach(HANDLE)
    except AlipesError:  # another program's file
        return None
    if server.status() == "ended":
        server.close()
        return None
    return server


def read_headers(lines: Sequence[str] | None, api_key: str | None) -> dict[str, str]:
    """The headers by name, among them the one of a key.

    Raises:
        ConfigError: If the key cannot stand in a header.
        UsageFailed: If one is not of the form NAME:VALUE.
    """
    from alipes.client.api_key import keyed_headers

    headers = {}
    for line in lines or ():
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise UsageFailed(f"write --header NAME:VALUE, not {line!r}")
        headers[name.strip()] = value.strip()
    return dict(keyed_headers(headers, api_key))


def hold_key(api_key: str | None) -> None:
    """Puts the key where every client of this command finds it, also in processes that it starts.

    Neither a file nor a command line of those has it then.

    Raises:
        ConfigError: If the key cannot stand in a header.
    """
    from alipes.client.api_key import VARIABLE, keyed_headers

    if api_key is not None:
        keyed_headers(None, api_key)
        os.environ[VARIABLE] = api_key


def with_scheme(address: str, *, encrypted: bool) -> str:
    """The address with the protocol that is spoken there, where it names none."""
    from alipes.client.wrong_port import spoken_at

    if "://" in address or address.startswith("unix:"):
        return address
    host = address.partition("/")[0]
    if host.isdecimal():
        address = f"localhost:{address}"
    elif ":" not in host.rpartition("]")[2]:
        address = f"{host}:{_DEFAULT_PORT}{address.removeprefix(host)}"
    if encrypted:
        return f"https://{address}"
    met = spoken_at(f"http://{address}")
    if met == "other":
        raise CommandFailed(
            "give --url the HTTP or gRPC port (usually 8000 and 8001)",
            f"what answers at {address} is no inference server; it may be the server's metrics",
        )
    return f"{met or 'http'}://{address}"
