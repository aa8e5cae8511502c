"""Checks what a command line says of the endpoints, each for itself and all together."""

from __future__ import annotations

from itertools import combinations

from alipes.config.options import Endpoint, ServerOptions
from alipes.errors import ConfigError

__all__ = ["check_doors"]


def check_doors(options: ServerOptions) -> None:
    """Refuse endpoints that stand in each other's way, or lack a certificate.

    Raises:
        ConfigError: With Triton's text, where it has one.
    """
    doors = [("HTTP", options.http), ("gRPC", options.grpc), ("metrics", options.metrics)]
    for (name, door), (other_name, other) in combinations(doors, 2):
        if door.enabled and other.enabled and _same_place(door, other):
            place = door.address if door.is_path else f"{door.address}:{door.port}"
            raise ConfigError(
                f"The server cannot listen to {name} requests and {other_name} requests at the same address and port "
                f"{place}",
                key=f"{name.lower()}-port",
            )
    for name, door in doors:
        if door.enabled:
            _check_tls(name.lower(), door)


def _same_place(door: Endpoint, other: Endpoint) -> bool:
    if door.address != other.address:
        return False
    return door.is_path or door.port == other.port != 0


def _check_tls(prefix: str, door: Endpoint) -> None:
    tls = door.tls
    if not tls.enabled and not tls.mutual:
        return
    switch = f"--{prefix}-use-ssl-mutual" if tls.mutual else f"--{prefix}-use-ssl"
    needed = {"server-cert": tls.certificate, "server-key": tls.key}
    if tls.mutual:
        needed["root-cert"] = tls.roots
    for flag, value in needed.items():
        if not value:
            raise ConfigError(f"{switch} needs --{prefix}-{flag}", key=f"{prefix}-{flag}")
