"""Results of the data plane's calls for asyncio: one wake-up of an event loop delivers all that have arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from alipes._core import ClientMailbox, ClientTask

__all__ = ["AsyncioBridge", "running_bridge"]

_bridges: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncioBridge] = WeakKeyDictionary()


class AsyncioBridge:
    """Carries results to the coroutines of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Registers the mailbox's descriptor with the loop."""
        self._mailbox = ClientMailbox()
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._last = 0
        loop.add_reader(self._mailbox.fileno(), _deliver, self._mailbox, self._futures)

    async def call(self, begin: Callable[[ClientMailbox, int], ClientTask | None]) -> Any:
        """Begins a call and awaits its result, `None` where none was begun; cancelling the coroutine cancels it."""
        self._last += 1
        number = self._last
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._futures[number] = future
        task: ClientTask | None = None
        try:
            task = begin(self._mailbox, number)
            return None if task is None else await future
        except asyncio.CancelledError:
            if task is not None:
                task.cancel()
            raise
        finally:
            del self._futures[number]


def running_bridge() -> AsyncioBridge:
    """The bridge of the running loop."""
    loop = asyncio.get_running_loop()
    bridge = _bridges.get(loop)
    if bridge is None:
        bridge = _bridges[loop] = AsyncioBridge(loop)
    return bridge


def _deliver(mailbox: ClientMailbox, futures: dict[int, asyncio.Future[Any]]) -> None:
    for number, outcome in mailbox.take():
        future = futures.get(number)
        if future is None or future.done():
            continue  # cancelled meanwhile
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
