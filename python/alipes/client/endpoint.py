"""The address of an endpoint: host, port, protocol and encryption, read from the text that a user writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from alipes.client.arguments import check_type, setting_error
from alipes.client.tls import Tls
from alipes.errors import ConfigError
from alipes.local_ports import resolve

__all__ = ["Endpoint", "Wire", "has_scheme"]

Wire = Literal["grpc", "http"]

_SCHEMES: Final[dict[str, tuple[Wire, bool]]] = {
    "grpc": ("grpc", False),
    "grpcs": ("grpc", True),
    "http": ("http", False),
    "https": ("http", True),
}
"""Scheme -> protocol, and whether the connection is encrypted."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint of a server.

    Attributes:
        wire: Its protocol.
        address: `host:port` or `unix:path`; over HTTP perhaps with a path behind the port.
        tls: What is known of encryption; `None` where connections are plain.
    """

    wire: Wire
    address: str
    tls: Tls | None = None

    @classmethod
    def parse(cls, address: str, tls: Tls | None = None) -> Endpoint:
        """Reads `grpc://host:port`, `http://host:port/path` or `host:port`, which is gRPC unless something else shows.

        `grpcs://` and `https://` are the same encrypted, as is an address without a scheme where something is said of
        encryption. `unix:path` stands for a Unix socket in the place of `host:port`, and a number alone for a port of
        this machine.

        Raises:
            ConfigError: If the address is no text, its scheme is another, or does not go together with what is said of
                encryption.
        """
        if not isinstance(address, str) or not address:
            raise setting_error("address", "text such as 'localhost:8001'", address)
        check_type("tls", Tls, "a Tls, such as Tls(roots='server.pem')", tls)
        scheme, _, rest = address.partition("://")
        if not has_scheme(address):
            return cls("grpc", _place(address), tls)
        known = _SCHEMES.get(scheme)
        if known is None:
            raise ConfigError(
                f"the address '{address}' cannot be used: '{scheme}' is unknown, write grpc://, grpcs://, http:// or https://",
                key="address",
            )
        wire, encrypted = known
        if tls is not None and not encrypted:
            raise ConfigError(
                f"the address '{address}' is for plain connections, and tls says how they are encrypted: write "
                f"{scheme}s://{rest}, or leave tls out",
                key="address",
            )
        return cls(wire, _place(rest), (tls or Tls()) if encrypted else None)

    def __str__(self) -> str:
        """The address, with its scheme."""
        return f"{self.wire}{'' if self.tls is None else 's'}://{self.address}"


def has_scheme(address: str) -> bool:
    """Whether an address says its protocol."""
    return "://" in address and not address.startswith("unix:")


def _place(address: str) -> str:
    if address.startswith("unix:"):
        return "unix:" + address.removeprefix("unix:").removeprefix("//")
    return resolve(f"localhost:{address}" if address.isdecimal() else address)
