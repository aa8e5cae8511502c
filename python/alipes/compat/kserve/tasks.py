"""A model with `async` handlers as one instance: all its requests are tasks of one event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from alipes._core import InferenceRequest, InferenceResponse, InferenceResponseSender, TritonError
from alipes.compat.kserve.exchange import Exchange, piece_of, refused_tensors
from alipes.compat.kserve.instance import ModelHandlers
from alipes.compat.kserve.model import InferenceVerb

__all__ = ["TaskInstance"]

_FINAL: Final = 1

Arrived = Sequence[tuple[InferenceResponseSender, Exchange]]
"""Requests of one task."""


class TaskInstance:
    """Hands requests over to the event loop, where up to so many tasks run at once."""

    def __init__(
        self,
        handlers: ModelHandlers,
        loop: asyncio.AbstractEventLoop,
        most_at_once: int,
        *,
        pieces: bool = False,
        together: bool = False,
    ) -> None:
        """Takes a model.

        Args:
            handlers: Those of the model.
            loop: The event loop, which runs on another thread.
            most_at_once: Tasks that run at the same time.
            pieces: Whether the model's answers may come in pieces, so that it is one of several responses.
            together: Whether requests that come together are one for the model.
        """
        self._handlers, self._loop, self._most = handlers, loop, most_at_once
        self._pieces, self._together = pieces, together
        self._arrived: deque[Arrived] = deque()
        # The loop holds tasks by weak references alone.
        self._tasks: set[asyncio.Task[None]] = set()
        # Sending a piece waits for a reader that is slow; threads are started as they are needed.
        self._senders = ThreadPoolExecutor(most_at_once, f"alipes-send-{handlers.name}") if pieces else None

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse | None] | None:
        """Hands requests over; they are answered by their senders."""
        arrived = []
        for request in requests:
            sender, exchange = request.get_response_sender(), Exchange.of(request, self._handlers.name)
            if exchange is None:
                _send(sender, refused_tensors(self._handlers.name))
            else:
                arrived.append((sender, exchange))
        if not self._together:
            self._arrived.extend([(one,) for one in arrived])
        elif arrived:
            self._arrived.append(arrived)
        self._loop.call_soon_threadsafe(self._begin)
        return None if self._pieces else [None] * len(requests)

    def close(self) -> None:
        """Ends the threads that send."""
        if self._senders is not None:
            self._senders.shutdown(wait=False)

    def _begin(self) -> None:
        while self._arrived and len(self._tasks) < self._most:
            arrived = self._arrived.popleft()
            answering = self._answer_together(arrived) if len(arrived) > 1 else self._answer(*arrived[0])
            task = self._loop.create_task(answering)
            self._tasks.add(task)
            task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._arrived:
            self._begin()

    async def _answer(self, sender: InferenceResponseSender, exchange: Exchange) -> None:
        if self._pieces and exchange.is_v1 and exchange.verb is InferenceVerb.PREDICT:
            await self._answer_in_pieces(sender, exchange)
        else:
            _send(sender, await self._handlers.respond(exchange))

    async def _answer_together(self, arrived: Arrived) -> None:
        responses = await self._handlers.respond_together([exchange for _, exchange in arrived])
        for (sender, _), response in zip(arrived, responses, strict=True):
            _send(sender, response)

    async def _answer_in_pieces(self, sender: InferenceResponseSender, exchange: Exchange) -> None:
        try:
            result, headers = await self._handlers.run(exchange, exchange.payload(), exchange.headers)
            if not isinstance(result, AsyncIterator):
                _send(sender, exchange.answer(result, headers))
                return
            first = await anext(result, None)
            _send(sender, piece_of(b"" if first is None else first, more=first is not None), last=first is None)
        except Exception as error:
            _send(sender, exchange.refused(error))
            return
        if first is not None:
            await self._send_others(sender, exchange, result)

    async def _send_others(
        self, sender: InferenceResponseSender, exchange: Exchange, pieces: AsyncIterator[object]
    ) -> None:
        try:
            async for piece in pieces:
                if sender.is_cancelled():
                    break
                await self._loop.run_in_executor(self._senders, sender.send, piece_of(piece, more=False))
        except Exception as error:
            exchange.refused(error)
            # The status has been sent: the body breaks off.
            _send(sender, InferenceResponse(error=TritonError(f"{type(error).__name__} : {error}")))
            return
        finally:
            with suppress(AttributeError):  # an iterator that is no generator
                await pieces.aclose()  # type: ignore[attr-defined]
        with suppress(Exception):  # the caller may be gone
            sender.send(flags=_FINAL)


def _send(sender: InferenceResponseSender, response: InferenceResponse, last: bool = True) -> None:
    with suppress(Exception):  # the caller or the server may be gone
        sender.send(response, flags=_FINAL if last else 0)
