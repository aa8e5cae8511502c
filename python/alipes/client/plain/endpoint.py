"""Where a server is and how it is asked, out of the address that a user writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from alipes.errors import ConfigError
from alipes.handover import resolve

__all__ = ["Endpoint", "Wire"]

Wire = Literal["grpc", "http"]

_SCHEMES: Final[dict[str, Wire]] = {"grpc": "grpc", "http": "http"}
_ENCRYPTED: Final = frozenset({"grpcs", "https"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A door of a server.

    Attributes:
        wire: How it is asked.
        address: `host:port`; over HTTP perhaps with a path behind it.
    """

    wire: Wire
    address: str

    @classmethod
    def parse(cls, address: str) -> Endpoint:
        """Reads `grpc://host:port`, `http://host:port/path` or `host:port`, which is gRPC.

        Raises:
            ConfigError: If the scheme is another.
        """
        scheme, separator, rest = address.partition("://")
        if not separator:
            return cls("grpc", resolve(address))
        wire = _SCHEMES.get(scheme)
        if wire is None:
            seen = "encrypted connections are not offered" if scheme in _ENCRYPTED else f"'{scheme}' is unknown"
            raise ConfigError(
                f"the address '{address}' cannot be used: {seen}", key="address", hint="write grpc://... or http://..."
            )
        return cls(wire, resolve(rest))
