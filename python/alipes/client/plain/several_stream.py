"""The responses of one of several servers to a request: it has a call in flight for as long as they come."""

from __future__ import annotations

from typing import Any

from alipes.client.plain.base import PlainClient
from alipes.client.plain.responses import ResponseSource
from alipes.client.servers.spread import Server, Servers
from alipes.errors import TransportError

__all__ = ["ServerResponses"]


class ServerResponses:
    """The responses of one of several servers."""

    def __init__(self, source: ResponseSource, servers: Servers[PlainClient], server: Server[PlainClient]) -> None:
        """Takes the responses, and the server that was entered for them."""
        self._source, self._servers, self._server = source, servers, server
        self._left = False

    def __next__(self) -> Any:
        """The outputs of the next response, after a wait for it."""
        try:
            return next(self._source)
        except BaseException as error:
            raise self._ended(error) from error.__cause__

    async def __anext__(self) -> Any:
        """The outputs of the next response, which is awaited."""
        try:
            return await anext(self._source)
        except BaseException as error:
            raise self._ended(error) from error.__cause__

    def close(self) -> None:
        """Cancels the request, where it is not answered to the end."""
        self._leave()
        self._source.close()

    def _ended(self, error: BaseException) -> BaseException:
        self._leave()
        if not isinstance(error, TransportError):
            return error
        self._servers.lose(self._server, error)
        return TransportError(
            f"the stream from {self._server} ended before its last response ({error}); it is not repeated at another "
            "server, for its first responses have been read"
        )

    def _leave(self) -> None:
        if not self._left:
            self._left = True
            self._servers.leave(self._server)
