"""What is attacked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A server with the models of `servers`.

    Attributes:
        http: Address of the HTTP endpoint, ``host:port``.
        grpc: The same of the gRPC endpoint.
        pid: Its process.
    """

    http: str
    grpc: str
    pid: int
