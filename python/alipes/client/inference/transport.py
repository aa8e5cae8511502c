"""What talks to the server, and where a server is."""

from __future__ import annotations

from alipes import _core, handover
from alipes.client.inference.calls import Calls
from alipes.client.inference.stream import Stream

__all__ = ["open_calls", "open_stream", "resolve"]


def resolve(address: str) -> str:
    """Where the server really listens: one that this process started may have had to take another port."""
    return handover.resolve(address)


def open_calls(address: str, timeout_s: float) -> Calls:
    """Asks the server at an address."""
    from alipes.client.inference.grpc_calls import GrpcCalls

    return GrpcCalls(address, timeout_s)


def open_stream(address: str, timeout_s: float) -> Stream:
    """Connects to the server at an address and opens a stream; raises `TransportError`."""
    return _core.ClientStream(address, timeout_s)
