"""Checks what a command line says of the endpoints, each for itself and all together."""

from __future__ import annotations

from itertools import combinations

from alipes.config.listener_options import Endpoint
from alipes.config.options import ServerOptions
from alipes.errors import ConfigError

__all__ = ["check_endpoints"]


def check_endpoints(options: ServerOptions) -> None:
    """Refuse endpoints that stand in each other's way, or lack a certificate.

    Raises:
        ConfigError: With Triton's text, where it has one.
    """
    endpoints = [("HTTP", options.http), ("GRPC", options.grpc), ("metrics", options.metrics)]
    for (name, endpoint), (other_name, other) in combinations(endpoints, 2):
        if endpoint.enabled and other.enabled and _same_place(endpoint, other):
            place = endpoint.address if endpoint.is_path else f"{endpoint.address}:{endpoint.port}"
            raise ConfigError(
                f"The server cannot listen to {name} requests and {other_name} requests at the same address and port "
                f"{place}",
                key=f"{name.lower()}-port",
            )
    for name, endpoint in endpoints:
        if endpoint.enabled:
            _check_tls(name.lower(), endpoint)


def _same_place(endpoint: Endpoint, other: Endpoint) -> bool:
    if endpoint.address != other.address:
        return False
    return endpoint.is_path or endpoint.port == other.port != 0


def _check_tls(prefix: str, endpoint: Endpoint) -> None:
    tls = endpoint.tls
    if not tls.enabled and not tls.mutual:
        return
    switch = f"--{prefix}-use-ssl-mutual" if tls.mutual else f"--{prefix}-use-ssl"
    needed = {"server-cert": tls.certificate, "server-key": tls.key}
    if tls.mutual:
        needed["root-cert"] = tls.roots
    for flag, value in needed.items():
        if not value:
            raise ConfigError(f"{switch} needs --{prefix}-{flag}", key=f"{prefix}-{flag}")
