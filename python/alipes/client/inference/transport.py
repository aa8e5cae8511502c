"""What talks to the server, and where a server is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from alipes import _core
from alipes.client.endpoint import Endpoint
from alipes.client.inference.calls import Calls
from alipes.client.inference.stream import Stream
from alipes.client.tls import Tls
from alipes.client.wrong_port import instead_of
from alipes.errors import ConfigError

__all__ = ["GrpcEndpoint"]

T = TypeVar("T")


class GrpcEndpoint:
    """A server's gRPC endpoint, to which connections are opened again and again.

    Attributes:
        address: As the user wrote it.
    """

    def __init__(
        self, address: str, tls: Tls | None, timeout_s: float, headers: Sequence[tuple[str, str]] | None = None
    ) -> None:
        """Connects with the first call.

        Args:
            address: `host:port`, `grpc://`, `grpcs://` or `unix:path`.
            tls: What is known of encryption.
            timeout_s: The longest time for a connection.
            headers: Headers of each call.

        Raises:
            ConfigError: If the address is not one of gRPC, or a file of `tls` cannot be used.
        """
        endpoint = Endpoint.parse(address, tls)
        if endpoint.wire != "grpc":
            where = instead_of(address, "http", "grpc")
            raise ConfigError(
                f"the address '{address}' is one of HTTP, where there are no streams; {where}", key="address"
            )
        self.address, self._tls_option, self._timeout_s = address, tls, timeout_s
        self._headers = headers
        self._tls = None if endpoint.tls is None else endpoint.tls.read()

    def calls(self) -> Calls:
        """Asks the server beside the stream."""
        from alipes.client.inference.grpc_calls import GrpcCalls

        return GrpcCalls(self._current_address(), self._timeout_s, self._tls, self._headers)

    def find(self, work: Callable[[Calls, str], T]) -> tuple[T, Calls]:
        """Does work at the server; returns what it has answered, and the calls to it, which stay open."""
        calls = self.calls()
        try:
            return work(calls, self.address), calls
        except BaseException:
            calls.close()
            raise

    def stream(self) -> Stream:
        """Connects and opens a stream; raises `TransportError`."""
        return _core.ClientStream(self._current_address(), self._timeout_s, self._headers, self._tls)

    def _current_address(self) -> str:
        """Where the server really listens now: one that this process started may have had to take another port."""
        return Endpoint.parse(self.address, self._tls_option).address
