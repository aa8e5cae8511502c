"""Our clients below PyTriton's: they send arrays as they are, and each set of headers has connections of its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final, Generic, TypeVar

from alipes.client.plain.aio import AsyncClient
from alipes.client.plain.base import PlainClient
from alipes.client.plain.options import Options
from alipes.client.plain.request import Inputs, Outputs, PreparedRequest
from alipes.client.plain.responses import ResponseSource
from alipes.client.plain.retry import Retry
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.steps import Steps
from alipes.client.plain.sync import Client
from alipes.compat.pytriton.client.arguments import own_signature

__all__ = ["ByHeaders", "PlainAsyncClient", "PlainSyncClient", "not_repeated"]

_MOST_HEADER_SETS: Final = 16
"""Sets of headers whose connections stay open; scripts use one or two."""


class _AsTheyAre(PlainClient):
    """A client that compares arrays with nothing before it sends them: what does not fit, the server refuses."""

    def _prepare_steps(
        self,
        model: str,
        inputs: Inputs,
        outputs: Outputs | None,
        options: Options,
        regions: tuple[SharedMemory, ...],
    ) -> Steps[PreparedRequest]:
        """The request as it was asked for."""
        yield from ()
        signature = own_signature(model, inputs, list(outputs or ()))  # type: ignore[arg-type]  # arrays by name
        return PreparedRequest(signature, inputs, outputs, options, regions)


class PlainSyncClient(_AsTheyAre, Client):
    """Ours, for calls that wait."""

    def begin(self, model: str, inputs: Inputs, outputs: list[str], wait_s: float, options: Options) -> ResponseSource:
        """Send a request that may have many responses, now."""
        return self._drive(self._stream_steps(model, inputs, outputs, wait_s, options))


class PlainAsyncClient(_AsTheyAre, AsyncClient):
    """Ours, for calls that are awaited."""


C = TypeVar("C", PlainSyncClient, PlainAsyncClient)


def not_repeated() -> Retry:
    """The retry policy of these clients: each request is sent once."""
    return Retry(times=0)


class ByHeaders(Generic[C]):
    """The clients of one server, by the headers that they send: our clients have theirs from the beginning."""

    def __init__(self, make: Callable[[Mapping[str, str]], C], headers: Mapping[str, str]) -> None:
        """Takes what makes a client, and the headers that all of them send."""
        self._make: Callable[[Mapping[str, str]], C] = make
        self._headers = dict(headers)
        self._lock = Lock()
        self._clients: OrderedDict[tuple[tuple[str, str], ...], C] = OrderedDict()

    def get(self, headers: Mapping[str, Any] | None = None) -> C:
        """The client that also sends these headers."""
        sent = self._headers | {name: str(value) for name, value in (headers or {}).items()}
        key = tuple(sorted(sent.items()))
        with self._lock:
            client = self._clients.get(key)
            if client is None:
                client = self._clients[key] = self._make(sent)
            self._clients.move_to_end(key)
            dropped = [self._clients.popitem(last=False)[1] for _ in range(len(self._clients) - _MOST_HEADER_SETS)]
        for one in dropped:
            one.close()  # a call that is under way on it ends first
        return client

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            clients = list(self._clients.values())
            self._clients.clear()
        for client in clients:
            client.close()
