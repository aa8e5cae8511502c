"""The responses to one request, as the server makes them: what `client.stream` returns."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import suppress
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

from alipes._core import ClientStream
from alipes.client.inference.failures import of_status, of_text
from alipes.client.plain.request import Array, PreparedRequest
from alipes.errors import DeadlineExceeded

__all__ = ["AsyncResponses", "Reception", "ResponseSource", "Responses", "in_thread"]

T = TypeVar("T")
Arrived: TypeAlias = "tuple[str, dict[str, Array] | None, str | None, bool | None]"
Received: TypeAlias = "list[Arrived] | None"

_MOST_AT_ONCE: Final = 64
"""Most responses that are taken from the data plane at a time."""

_OPEN: Final[weakref.WeakSet[Reception]] = weakref.WeakSet()


class ResponseSource(Protocol):
    """Where the responses to a request come from: waited for or awaited, up to `StopIteration` of either kind."""

    def __next__(self) -> Any:
        """The outputs of the next response, after a wait for it."""

    async def __anext__(self) -> Any:
        """The outputs of the next response, which is awaited."""

    def close(self) -> None:
        """Cancels the request, where it is not answered to the end."""


class Reception:
    """An open stream with one request, and the responses that have arrived on it."""

    def __init__(self, stream: ClientStream, request: PreparedRequest, limit_s: float | None) -> None:
        """Takes a stream on which the request was sent.

        Args:
            stream: The stream.
            request: Its request.
            limit_s: The longest wait for a response; `None` is no limit.
        """
        self._stream = stream
        self._request = request
        self._limit_s = limit_s
        self._arrived: deque[Arrived] = deque()
        self._ended = False
        self._marks: set[bool | None] = set()
        _OPEN.add(self)

    def take(self) -> tuple[Any, bool]:
        """The outputs of the next response that has arrived, or `None`; and whether others may follow.

        Raises:
            InferError: If the server ended the request with an error.
        """
        while self._arrived:
            _, outputs, text, last = self._arrived.popleft()
            self._marks.add(last)
            if last or text is not None:
                self._ended = True
            if text is not None:
                self.close()
                raise of_text(text, self._request.model, self._request.request_id)
            if outputs:
                return self._request.result(outputs), True
        if self._ended:
            self.close()
        return None, not self._ended

    def __next__(self) -> Any:
        """The outputs of the next response, after a wait for it."""
        while True:
            outputs, more = self.take()
            if outputs is not None:
                return outputs
            if not more:
                raise StopIteration
            self.add(self.receive(wait=True))

    async def __anext__(self) -> Any:
        """The outputs of the next response, which is awaited."""
        while True:
            outputs, more = self.take()
            if outputs is not None:
                return outputs
            if not more:
                raise StopAsyncIteration
            # What is there already needs no thread.
            received = self.receive(wait=False)
            self.add(await in_thread(lambda: self.receive(wait=True)) if received == [] else received)

    def receive(self, *, wait: bool) -> Received:
        """What has arrived in the data plane, perhaps after a wait; `None` at the end of the stream."""
        return self._stream.receive(_MOST_AT_ONCE, self._limit_s if wait else 0.0)

    def add(self, received: Received) -> None:
        """Takes what `receive` has returned after a wait.

        A server that never says of a response whether it is the last one says it by ending the stream without an error.

        Raises:
            DeadlineExceeded: If it is nothing.
            TransportError: If the stream has ended before the last response.
            InferError: If the server says why it has ended it.
        """
        if received:
            self._arrived.extend(received)
            return
        self._ended = True
        code, why = self._stream.status() or ("UNKNOWN", "")
        self.close()
        if received is None and code == "OK" and self._marks == {None}:
            return
        if received is not None:
            text = f"no further response within {self._limit_s:g} s"
            raise DeadlineExceeded(text, model=self._request.model, request_id=self._request.request_id or None)
        raise of_status(code, why or "the server ended the stream before the last response")

    def close(self) -> None:
        """Cancels the request, where it is not answered to the end."""
        _OPEN.discard(self)
        self._stream.cancel()


class Responses(Iterator[T]):
    """The responses of `Client.stream`: iterate over them. The request is sent when the first one is wanted.

    Leaving the loop cancels the request, as does `close`; also a context manager.
    """

    def __init__(self, begin: Callable[[], ResponseSource]) -> None:
        """Takes what sends the request."""
        self._begin = begin
        self._reception: ResponseSource | None = None
        self._ended = False

    def __iter__(self) -> Self:
        """The iterator itself."""
        return self

    def __next__(self) -> T:
        """The outputs of the next response.

        Raises:
            StopIteration: After the last one.
            InferError: If the server ends the request with an error.
            DeadlineExceeded: If the next response takes longer than the time-out.
            TransportError: If the connection breaks.
        """
        if self._ended:
            raise StopIteration
        try:
            if self._reception is None:
                self._reception = self._begin()
            response: T = next(self._reception)
        except BaseException:
            self.close()
            raise
        return response

    def close(self) -> None:
        """Cancels the request, where it is not answered to the end."""
        self._ended = True
        if self._reception is not None:
            self._reception.close()

    def __enter__(self) -> Self:
        """The iterator itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Cancels the request."""
        self.close()

    def __del__(self) -> None:
        """Cancels the request of a loop that was left."""
        if getattr(self, "_reception", None) is not None:
            self.close()


class AsyncResponses(AsyncIterator[T]):
    """The responses of `AsyncClient.stream`, for `async for`. The request is sent when the first one is wanted.

    Leaving the loop cancels the request, as do `close`, `aclose` and the cancellation of a task that waits.
    """

    def __init__(self, begin: Callable[[], Awaitable[ResponseSource]]) -> None:
        """Takes what sends the request."""
        self._begin = begin
        self._reception: ResponseSource | None = None
        self._ended = False

    def __aiter__(self) -> Self:
        """The iterator itself."""
        return self

    async def __anext__(self) -> T:
        """The outputs of the next response.

        Raises:
            StopAsyncIteration: After the last one.
            InferError: If the server ends the request with an error.
            DeadlineExceeded: If the next response takes longer than the time-out.
            TransportError: If the connection breaks.
        """
        if self._ended:
            raise StopAsyncIteration
        try:
            if self._reception is None:
                self._reception = await self._begin()
            response: T = await anext(self._reception)
        except BaseException:
            self.close()
            raise
        return response

    def close(self) -> None:
        """Cancels the request, where it is not answered to the end."""
        self._ended = True
        if self._reception is not None:
            self._reception.close()

    def __await__(self) -> Generator[None, None, Self]:
        """The iterator itself, for those who await it as they do other calls."""
        yield from ()
        return self

    async def aclose(self) -> None:
        """Cancels the request, where it is not answered to the end."""
        self.close()

    async def __aenter__(self) -> Self:
        """The iterator itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cancels the request."""
        self.close()

    def __del__(self) -> None:
        """Cancels the request of a loop that was left."""
        if getattr(self, "_reception", None) is not None:
            self.close()


_WAITING: Final[set[threading.Thread]] = set()


async def in_thread(work: Callable[[], T]) -> T:
    """Awaits work that blocks, on a thread of its own: those of the loop's executor are few, and streams wait long."""
    import asyncio  # who awaits has it already; who waits never needs it

    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return  # cancelled meanwhile
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        _WAITING.discard(threading.current_thread())
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(settle, result, error)

    thread = threading.Thread(target=run, name="alipes-client-stream", daemon=True)
    _WAITING.add(thread)
    thread.start()
    return await future


def _cancel_all() -> None:
    """At the interpreter's end: no thread is left waiting for a server."""
    for reception in list(_OPEN):
        reception.close()
    for thread in list(_WAITING):
        thread.join()


atexit.register(_cancel_all)
