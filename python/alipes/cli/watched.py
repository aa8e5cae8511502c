"""The servers that `alipes monitor` watches: which of a server's ports an address means, and where the others are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from alipes.cli.connection import launched
from alipes.cli.failures import CommandFailed
from alipes.client import Tls
from alipes.client.wrong_port import spoken_at
from alipes.errors import AlipesError
from alipes.monitor.servers import Place, place

__all__ = ["Ports", "watched"]

_ADDRESS: Final = re.compile(
    r"(?:(?P<scheme>[a-z]+)://)?(?P<host>\[[^\]]*\]|[^:/\[\]]+)(?::(?P<port>\d{1,5}))?/?", re.IGNORECASE
)
_WIRES: Final = {"http": "http", "https": "http", "grpc": "grpc", "grpcs": "grpc"}


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports that the command line names; `None` for those that follow from an address, or are the usual ones."""

    http: int | None = None
    grpc: int | None = None
    metrics: int | None = None

    def filled(self, http: int = 8000, grpc: int = 8001, metrics: int = 8002) -> tuple[int, int, int]:
        """HTTP, metrics and gRPC, with these numbers for the ports that are not named."""
        return (
            http if self.http is None else self.http,
            metrics if self.metrics is None else self.metrics,
            grpc if self.grpc is None else self.grpc,
        )


def watched(addresses: Sequence[str], ports: Ports, tls: Tls | None) -> list[Place]:
    """The servers, each with its ports; without an address the one that was launched from this folder, or this machine.

    Raises:
        CommandFailed: If an address is none, or there is no metrics endpoint.
    """
    if addresses:
        return [_place(address, ports, tls) for address in addresses]
    server = launched() if ports == Ports() else None
    if server is None:
        return [place("localhost", *ports.filled(), tls)]
    with server:
        try:
            known = {name: int(getattr(server, f"{name}_port")) for name in _named(server, ("http", "grpc"))}
            filled = ports.filled(**known, metrics=server.metrics_port)
            return [place(server.metrics.rpartition(":")[0], *filled, tls)]
        except AlipesError as error:
            raise CommandFailed("start it again with metrics", str(error)) from error


def _named(server: object, names: Sequence[str]) -> list[str]:
    """The endpoints that a server has."""
    found = []
    for name in names:
        try:
            getattr(server, name)
        except AlipesError:  # its flags close this endpoint
            continue
        found.append(name)
    return found


def _place(address: str, ports: Ports, tls: Tls | None) -> Place:
    match = _ADDRESS.fullmatch(address)
    scheme = (match["scheme"] or "").lower() if match else ""
    if match is None or (scheme and scheme not in _WIRES):
        raise CommandFailed("write HOST, HOST:PORT, http://HOST:PORT or grpc://HOST:PORT", f"it is {address!r}")
    security = tls or (Tls() if scheme.endswith("s") else None)
    host = match["host"]
    if match["port"] is None:
        return place(host, *ports.filled(), security)
    port = int(match["port"])
    wire = _WIRES[scheme] if scheme else _spoken(host, port, security)
    # As servers number their ports: HTTP, gRPC, metrics.
    first = port - ("http", "grpc", None).index(wire)
    filled = ports.filled(first, first + 1, first + 2) if wire else ports.filled(metrics=port)
    return replace(place(host, *filled, security), ip=f"{host}:{port}")


def _spoken(host: str, port: int, tls: Tls | None) -> str | None:
    """HTTP, gRPC, or nothing that is known: the metrics, then, or nobody."""
    met = None if tls is not None else spoken_at(f"http://{host}:{port}")
    return None if met == "other" else met
