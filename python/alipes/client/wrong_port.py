"""Which protocol a server speaks at an address: for a client that got no sensible answer there, and for commands.

The endpoints of one server are easily mistaken for each other: 8000 is HTTP, 8001 gRPC, 8002 metrics.
"""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from alipes.client.endpoint import Endpoint, Wire, has_scheme
from alipes.client.tls import Tls
from alipes.errors import AlipesError, TransportError

__all__ = ["advice", "find_endpoint", "instead_of", "spoken_at"]

Spoken: TypeAlias = "Wire | Literal['other']"
"""`other` is HTTP of something that is surely no inference server: metrics."""

_TIMEOUT_S: Final = 1.0
_MOST_BYTES: Final = 4096
_SETTINGS: Final = 4
"""Type of the frame with which other HTTP/2 servers begin, whatever they are asked; ours names the upgrade."""

_OUR_METRICS: Final = "text/plain; charset=utf-8"
"""What a server's metrics port answers to any path but its own: nothing (Triton's, recorded), or where they are."""
_WHERE_METRICS_ARE: Final = b"# GET /metrics "

_PROMETHEUS: Final = (
    "application/openmetrics-text",
    "text/plain; version=",
    "application/vnd.google.protobuf; proto=io.",
)

_PLACE: Final = re.compile(r"(?:[a-z]+://)?(?P<host>\[[^\]]*\]|[^:/\[\]]*):(?P<port>\d+)(?:/.*)?")

_OTHER: Final = "the server at {address} is no inference server, but HTTP of another kind, such as its metrics"

_LAST_PORT: Final = 65535

_NAMES: Final[dict[Wire, str]] = {"http": "HTTP", "grpc": "gRPC"}
_STEPS: Final[dict[tuple[Wire, Spoken], int]] = {
    ("grpc", "http"): 1,
    ("grpc", "other"): -1,
    ("http", "grpc"): -1,
    ("http", "other"): -2,
}
"""What is wanted and what was met -> from one port to the other, as servers number them."""


def advice(address: str, wanted: Wire, tls: Tls | None = None) -> str | None:
    """What answers at an address instead of what a client wants, and where that is; None where there is nothing to say.

    An encrypted address, and one with a path, is another program's, which answers as it likes: nobody looks there.

    Args:
        address: As the user wrote it.
        wanted: The protocol of the client.
        tls: What the client knows of encryption.

    Units: waits for a second at most, twice.
    """
    place = _PLACE.fullmatch(address)
    if place is None or not _is_plain(address, tls):
        return None
    met = spoken_at(address)
    if met is None or met == wanted:
        return None
    seen = _OTHER.format(address=address) if met == "other" else f"the server at {address} speaks {_NAMES[met]}"
    where = instead_of(address, met, wanted)
    return f"{seen}, and this client uses {_NAMES[wanted]}; {where}"


def instead_of(address: str, met: Spoken, wanted: Wire) -> str:
    """What to pass for an address that speaks another protocol: the neighbouring port where that speaks the right one.

    Args:
        address: As the user wrote it.
        met: What is spoken there.
        wanted: The protocol of the client.

    Units: waits for a second at most.
    """
    place = _PLACE.fullmatch(address)
    port = 0 if place is None else int(place["port"]) + _STEPS[wanted, met]
    likely = "" if place is None or not 0 < port <= _LAST_PORT else f"{place['host']}:{port}"
    if likely and spoken_at(likely) == wanted:
        return f"{_NAMES[wanted]} is at {likely}: pass '{'http://' if wanted == 'http' else ''}{likely}'"
    return f"pass the address of its {_NAMES[wanted]} endpoint (usually HTTP is 8000, gRPC 8001, metrics 8002)"


def spoken_at(address: str) -> Spoken | None:
    """The protocol that is spoken there; None where nobody answers, or nobody says."""
    try:
        authority = Endpoint.parse(address).address.partition("/")[0]
        with _connection(Endpoint.parse(address).address) as connection:
            connection.settimeout(_TIMEOUT_S)
            host = "localhost" if authority.startswith("unix:") else authority
            connection.sendall(f"GET /v2 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while len(answer) < _MOST_BYTES and (more := connection.recv(_MOST_BYTES)):
                answer += more
                if not answer.startswith(b"HTTP/1."[: len(answer)]):
                    break
    except (OSError, ValueError, AlipesError):
        return None
    if answer.startswith(b"HTTP/1."):
        return _kind_of(answer)
    return "grpc" if len(answer) >= 9 and answer[3] == _SETTINGS else None


def find_endpoint(address: str, tls: Tls | None = None) -> Endpoint:
    """The endpoint at an address; where that has no scheme, what is spoken there says which protocol it is of.

    Args:
        address: `host:port`, `grpc://`, `http://`, `grpcs://`, `https://` or `unix:path`.
        tls: What is known of encryption; with it, an address without a scheme is one of gRPC.

    Raises:
        ConfigError: If the address cannot be read.
        TransportError: If nobody answers at an address without a scheme, or no inference server does.

    Units: waits for a second at most.
    """
    endpoint = Endpoint.parse(address, tls)
    if has_scheme(address) or endpoint.tls is not None:
        return endpoint
    met = spoken_at(address)
    if met is None:
        raise TransportError(f"no inference server answers at {address}: is one running there?")
    if met == "other":
        raise TransportError(f"{_OTHER.format(address=address)}; {instead_of(address, met, 'grpc')}")
    return replace(endpoint, wire=met)


def _connection(address: str) -> socket.socket:
    """A connection to `host:port` or `unix:path`."""
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(address.removeprefix("unix:"))
        except BaseException:
            connection.close()
            raise
        return connection
    host, _, port = address.partition("/")[0].rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), _TIMEOUT_S)


def _is_plain(address: str, tls: Tls | None) -> bool:
    try:
        endpoint = Endpoint.parse(address, tls)
    except AlipesError:
        return False
    return endpoint.tls is None and "/" not in endpoint.address


def _kind_of(answer: bytes) -> Spoken | None:
    """What an answer of HTTP tells of who gave it. A page of somebody in between tells nothing."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").lower().split("\r\n")
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    content_type = fields.get("content-type", "")
    if " 426 " in status and fields.get("upgrade") == "h2c":
        return "grpc"
    if content_type.startswith("application/json"):
        return "http"
    says_nothing = not body or body.startswith(_WHERE_METRICS_ARE)
    is_ours = " 200" in status and content_type == _OUR_METRICS and says_nothing
    return "other" if is_ours or content_type.startswith(_PROMETHEUS) else None
