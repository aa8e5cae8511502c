"""Calls to a server beside those that are measured."""

from __future__ import annotations

from alipes._core import ClientLink
from alipes.client.endpoint import Endpoint
from alipes.compat.perf_analyzer.requests import tls_of
from alipes.compat.perf_analyzer.settings import Target

__all__ = ["call"]

_TIMEOUT_S = 60.0


def call(target: Target, path: str, body: bytes) -> bytes:
    """Asks and waits: over gRPC a method and its message, over HTTP a path and what is posted.

    Raises:
        AlipesError: If the server is not there, or refuses.
    """
    endpoint = Endpoint.parse(target.address, tls_of(target))
    security = endpoint.tls.read() if endpoint.tls is not None else None
    link = ClientLink(endpoint.address, endpoint.wire, headers=list(target.headers.items()), tls=security)
    try:
        return link.call(path, body, _TIMEOUT_S)
    finally:
        link.close()
