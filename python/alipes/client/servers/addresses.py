"""The addresses of a client: one, several, or a name that stands for several."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from alipes.client.arguments import setting_error
from alipes.errors import ConfigError, TransportError

__all__ = ["Address", "Place", "are_several", "listed", "places", "read_addresses", "with_reasons"]

Address: TypeAlias = str | Sequence[str]
"""An address, several in one text with commas between, or a list of them."""

_NAME: Final = "dns:///"
"""What stands in front of a name of which every address is a server. Source: gRPC's naming of targets."""

_EXPECTED: Final = "text such as 'localhost:8001', or a list of such texts"


@dataclass(frozen=True, slots=True)
class Place:
    """Where one server is.

    Attributes:
        address: As `Endpoint.parse` reads it.
        name: The name that was looked up for it, which its certificate bears; `None` where none was.
    """

    address: str
    name: str | None = None


def are_several(address: Address) -> bool:
    """Whether an address may stand for several servers: a name may, whatever it stands for now."""
    if isinstance(address, str):
        return address.startswith("dns:") or ("," in address and not address.startswith("unix:"))
    return len(address) > 1 or any(map(are_several, address))


def read_addresses(address: Address) -> list[str]:
    """The addresses of a client, each by itself.

    A text that begins with `unix:` is one address, for its path may have commas.

    Raises:
        ConfigError: If there is none, one is no text, or one is there twice.
    """
    if not isinstance(address, str | Sequence) or isinstance(address, bytes):
        raise setting_error("address", _EXPECTED, address)
    texts = [address] if isinstance(address, str) else list(address)
    found: list[str] = []
    for text in texts:
        if not isinstance(text, str):
            raise setting_error("address", _EXPECTED, text)
        found += [text] if text.startswith("unix:") else [part.strip() for part in text.split(",")]
    if not found or not all(found):
        raise setting_error("address", _EXPECTED, address)
    for one in found:
        if found.count(one) > 1:
            raise ConfigError(f"the address '{one}' is there twice: each server needs one address", key="address")
        if one.startswith("dns:"):
            _host_and_port(one)
    return found


def listed(address: Address) -> str:
    """The addresses as one text, for messages."""
    return ", ".join(read_addresses(address))


def with_reasons(reasons: Mapping[str, str]) -> str:
    """Addresses with a reason each, as one text; an address that its reason names is not named twice."""
    return "; ".join(
        text if address.rpartition("://")[2] in text else f"{address}: {text}" for address, text in reasons.items()
    )


def places(addresses: Iterable[str]) -> list[Place]:
    """Where the servers are now: names are looked up.

    Raises:
        TransportError: If a name is unknown, or nobody can be asked about it.

    Units: a look-up takes as long as the system's resolver waits.
    """
    found: dict[str, Place] = {}
    for address in addresses:
        for place in _looked_up(address) if address.startswith("dns:") else [Place(address)]:
            found.setdefault(place.address, place)
    return list(found.values())


def _looked_up(address: str) -> list[Place]:
    """The servers of a name, of IPv4 where it has any: a server that listens to both would count twice."""
    host, port = _host_and_port(address)
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        failure = TransportError(f"the name '{host}' of '{address}' cannot be looked up: {error.strerror or error}")
        failure.reached = False
        raise failure from error
    first = [row for row in rows if row[0] == socket.AF_INET] or rows
    numbers = [str(row[4][0]) for row in first]
    return [Place(f"[{number}]:{port}" if ":" in number else f"{number}:{port}", host) for number in numbers]


def _host_and_port(address: str) -> tuple[str, int]:
    host, colon, port = address.removeprefix(_NAME).rpartition(":")
    if not address.startswith(_NAME) or not colon or not host or not port.isdecimal():
        raise ConfigError(
            f"the address '{address}' cannot be used: write a name with its port, dns:///name:8001", key="address"
        )
    return host.strip("[]"), int(port)
