"""Requests of a client that are under way: over one stream of gRPC, or over HTTP by some threads."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from alipes.batch.folder import Start
from alipes.client import Client, Retry, StreamClient, Tls
from alipes.client.wrong_port import spoken_at
from alipes.errors import ConfigError, DeadlineExceeded, InferError, NotFound, NotReady, Overloaded, TransportError
from alipes.local_ports import resolve

if TYPE_CHECKING:
    from alipes.batch.plan import Plan

__all__ = ["Sender", "StreamSender", "is_trouble", "open_client", "open_sender", "with_protocol"]

_RETRY: Final = Retry(times=8, first_s=0.1, most_s=5.0)
"""A server that is busy is asked again for about twenty seconds."""
_RECONNECT_S: Final = 1.0
"""How long one address is tried again: there may be other servers."""
_CONNECT_S: Final = 5.0


class Sender(Protocol):
    """What sends the requests of a client."""

    def submit(self, inputs: Mapping[str, Any]) -> Future[Any]:
        """Sends a request."""

    def cancel(self) -> None:
        """Ends everything that is under way."""


class StreamSender:
    """Over one stream of gRPC."""

    def __init__(self, address: str, plan: Plan, start: Start, strides: int = 1) -> None:
        """Connects.

        Args:
            address: The server.
            plan: The plan.
            start: How servers are asked.
            strides: Strides of an update where the server leaves that open.

        Raises:
            AlipesError: If the server cannot be reached, or has no such model.
        """
        self.client = StreamClient(
            address,
            plan.model,
            version=plan.version or None,
            batch_size=strides,
            ordered=plan.stream is not None,
            max_in_flight=None,
            max_unread_bytes=None,
            timeout_s=start.timeout_s,
            connect_timeout_s=_CONNECT_S,
            retry=_RETRY,
            reconnect_s=_RECONNECT_S,
            headers=start.headers,
            tls=_tls(start),
        )
        self.client.__enter__()

    def submit(self, inputs: Mapping[str, Any]) -> Future[Any]:
        """Sends a request."""
        return self.client.submit(inputs)

    def cancel(self) -> None:
        """Ends the stream."""
        self.client.cancel()


class PlainSender:
    """Over HTTP, by as many threads as there are requests under way."""

    def __init__(self, address: str, plan: Plan, start: Start) -> None:
        """Opens nothing yet."""
        self._client = open_client(address, start, retry=_RETRY)
        self._threads = ThreadPoolExecutor(start.in_flight, "alipes-batch")
        self._model, self._version = plan.model, plan.version

    def submit(self, inputs: Mapping[str, Any]) -> Future[Any]:
        """Sends a request."""
        return self._threads.submit(self._client.infer, self._model, inputs, version=self._version or None)

    def cancel(self) -> None:
        """Ends what has not begun, and closes the connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()


def open_sender(address: str, plan: Plan, start: Start) -> Sender:
    """What sends requests to a server.

    Raises:
        AlipesError: If it cannot be reached, or has no such model.
    """
    if address.startswith(("grpc://", "grpcs://")):
        return StreamSender(address, plan, start, 1 if plan.stream is None else plan.stream.strides)
    return PlainSender(address, plan, start)


def open_client(address: str, start: Start, retry: Retry | None = None) -> Client:
    """A client for single calls to a server."""
    return Client(
        address,
        timeout_s=start.timeout_s,
        connect_timeout_s=_CONNECT_S,
        retry=retry or Retry(times=0),
        headers=start.headers,
        tls=_tls(start),
    )


def with_protocol(address: str) -> str:
    """An address with the protocol that is spoken there, as a worker on another machine can use it.

    Raises:
        ConfigError: If what answers is no model server.
    """
    if "://" in address or address.startswith("unix:"):
        return address
    met = spoken_at(f"http://{address}")
    if met == "other":
        raise ConfigError(
            f"what answers at {address} is no inference server: give the HTTP or gRPC port, usually 8000 and 8001",
            key="url",
        )
    return f"{met or 'grpc'}://{resolve(address)}"


def is_trouble(error: BaseException) -> bool:
    """Whether an error is the server's, so that the same request may be answered later, or elsewhere."""
    if isinstance(error, InferError):
        return isinstance(error, DeadlineExceeded | NotFound | NotReady | Overloaded)
    return isinstance(error, TransportError)


def _tls(start: Start) -> Tls | None:
    return Tls(roots=Path(start.tls_roots)) if start.tls_roots else None
