"""The three endpoints of a server: which ports a script's flags ask for, and which ports there are."""

from __future__ import annotations

import logging
import shlex
import socket
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, Literal

from alipes.errors import ServeError

__all__ = [
    "DEFAULT_PORTS",
    "EndpointName",
    "Endpoints",
    "ServerEndpoint",
    "choose_ports",
    "flag_words",
    "free_ports",
    "named_ports",
    "report_moved",
    "requested_endpoints",
]

EndpointName = Literal["http", "grpc", "metrics"]

DEFAULT_PORTS: Final[dict[EndpointName, int]] = {"http": 8000, "grpc": 8001, "metrics": 8002}
"""The usual ports of servers."""

_HIGHEST_PORT: Final = 65535
_log = logging.getLogger("alipes.serve")


@dataclass(frozen=True, slots=True)
class ServerEndpoint:
    """One endpoint.

    Attributes:
        host: Address that it is bound to; empty for all of this machine.
        requested: Port by which a script knows it.
        port: Port that it is bound to.
        fixed: Whether the script named the port itself, so that no other will do.
        encrypted: Whether it speaks TLS alone.
    """

    host: str
    requested: int
    port: int
    fixed: bool
    encrypted: bool = False

    @property
    def address(self) -> str:
        """Where a client on this machine reaches it, `host:port`."""
        host = "127.0.0.1" if self.host in ("", "0.0.0.0") else "[::1]" if self.host == "::" else self.host
        return f"{host}:{self.port}"


Endpoints = dict[EndpointName, ServerEndpoint]


def flag_words(server_args: Sequence[str] | str | None) -> list[str]:
    """The flags as words of a command line. `"--flag value"` in one string is two words, as a shell would have it.

    Raises:
        ServeError: If they are no words.
    """
    if isinstance(server_args, str):
        return shlex.split(server_args)
    if server_args is not None and (
        not isinstance(server_args, Sequence) or not all(isinstance(text, str) for text in server_args)
    ):
        raise ServeError(
            f'server_args={server_args!r} cannot be used: it takes words, as in ["--http-port=9000"]; keywords do the '
            "same, as in http_port=9000"
        )
    words: list[str] = []
    for text in server_args or ():
        name, space, _ = text.partition(" ")
        several = name.startswith("--") and space and ("=" not in name or " --" in text)
        words += shlex.split(text) if several else [text]
    return words


def requested_endpoints(words: Sequence[str]) -> Endpoints:
    """What the flags say about the endpoints; an endpoint that they close is left out.

    Raises:
        ServeError: If a port is none.
    """
    endpoints: Endpoints = {}
    for name, default in DEFAULT_PORTS.items():
        if (_flag(words, f"allow-{name}") or "true").lower() in ("false", "0"):
            continue
        text = _flag(words, f"{name}-port")
        port = default if text is None else _port(text, f"--{name}-port")
        first = _flag(words, "port")
        if text is None and first is not None:  # `--port` is HTTP's, and the others follow it
            text, port = first, _port(first, "--port")
            port += default - DEFAULT_PORTS["http"] if port else 0
        host = _flag(words, f"{name}-address") or _flag(words, "host") or ""
        # Port 0 says that any will do: scripts then know the endpoint by its usual number.
        encrypted = _is_on(_flag(words, f"{name}-use-ssl"))
        fixed = bool(text) and port != 0
        endpoints[name] = ServerEndpoint(host, port or default, port, fixed, encrypted)
    return endpoints


def choose_ports(endpoints: Endpoints, reserved_ports: Collection[int] = ()) -> Endpoints:
    """The endpoints on free ports: the requested ones if they are free, else any.

    Args:
        endpoints: What flags say about them.
        reserved_ports: Ports that other servers of this process are about to use.

    Raises:
        ServeError: If the script named a port itself and it is in use.
    """
    chosen: Endpoints = dict(endpoints)
    moved: list[EndpointName] = []
    for name, endpoint in endpoints.items():
        if endpoint.host.startswith("unix:") or (
            endpoint.port not in {0, *reserved_ports} and is_free(endpoint.host, endpoint.port)
        ):
            continue
        if endpoint.fixed:
            raise ServeError(
                f"port {endpoint.port}, which --{name}-port names, is already in use: name another port, or none; "
                "without one a free port is taken, and alipes clients in this process find it"
            )
        moved.append(name)
    for name, port in zip(moved, free_ports([endpoints[name].host for name in moved], reserved_ports), strict=True):
        chosen[name] = replace(endpoints[name], port=port)
    return chosen


def named_ports(endpoints: Endpoints) -> dict[int, int]:
    """The port of each endpoint by the one that scripts name."""
    return {endpoint.requested: endpoint.port for endpoint in endpoints.values()}


def report_moved(name: str, requested: Endpoints, chosen: Endpoints) -> None:
    """Logs a warning where a server is at other ports than the usual ones because those are in use."""
    moved = [endpoint for endpoint, wanted in requested.items() if wanted.port not in {0, chosen[endpoint].port}]
    if moved:
        ports = [str(requested[endpoint].port) for endpoint in moved]
        _log.warning(
            "%s in use: the server %s has %s; alipes clients in this process and in those that it starts still find "
            "them at %s of localhost, other clients need the address",
            f"port {ports[0]} is" if len(ports) == 1 else f"ports {', '.join(ports[:-1])} and {ports[-1]} are",
            name,
            ", ".join(f"{endpoint} at {chosen[endpoint].address}" for endpoint in moved),
            "this port" if len(ports) == 1 else "these ports",
        )


def is_free(host: str, port: int) -> bool:
    """Whether a port is free. Another process may take it before the server does, so the start has to be checked."""
    with _socket(host) as probe:
        # What connections of the server before us left behind does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
        return True


def free_ports(hosts: Sequence[str], reserved_ports: Collection[int] = ()) -> list[int]:
    """A port for each address that the system says is free, each another one, and none that is spoken for.

    Raises:
        ServeError: If an address is none of this machine.
    """
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < len(hosts):
            host = hosts[len(found)]
            probe = held.enter_context(_socket(host))
            try:
                probe.bind((host, 0))
            except OSError as error:
                raise ServeError(f"no server can listen at {host!r}: {error.strerror or error}") from error
            port: int = probe.getsockname()[1]
            if port not in reserved_ports:
                found.append(port)
    return found


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)


def _flag(words: Sequence[str], name: str) -> str | None:
    """The last value that the words give a flag."""
    value = None
    for index, word in enumerate(words):
        flag, equals, text = word.partition("=")
        if flag.replace("_", "-") == f"--{name}":
            value = text if equals else next(iter(words[index + 1 : index + 2]), "")
    return value


def _is_on(value: str | None) -> bool:
    """Whether a switch is on, whose word may stand alone."""
    return value is not None and value.lower() not in ("false", "0")


def _port(text: str, flag: str) -> int:
    if not text.isdecimal() or int(text) > _HIGHEST_PORT:
        raise ServeError(f"{flag} is {text!r}, which is no port: give a number from 0 to {_HIGHEST_PORT}")
    return int(text)
