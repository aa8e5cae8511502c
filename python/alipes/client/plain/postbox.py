"""Answers on their way to the coroutines that await them: one wake-up of an event loop brings all that are there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from alipes._core import ClientMailbox, ClientTask

__all__ = ["Postbox", "postbox"]

_boxes: WeakKeyDictionary[asyncio.AbstractEventLoop, Postbox] = WeakKeyDictionary()


class Postbox:
    """The answers for one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Has the loop watch for answers."""
        self._mailbox = ClientMailbox()
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._last = 0
        loop.add_reader(self._mailbox.fileno(), _deliver, self._mailbox, self._futures)

    async def ask(self, begin: Callable[[ClientMailbox, int], ClientTask]) -> Any:
        """Begins a call and awaits its answer; cancelling withdraws it."""
        self._last += 1
        number = self._last
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._futures[number] = future
        task: ClientTask | None = None
        try:
            task = begin(self._mailbox, number)
            return await future
        except asyncio.CancelledError:
            if task is not None:
                task.cancel()
            raise
        finally:
            del self._futures[number]


def postbox() -> Postbox:
    """The postbox of the running loop."""
    loop = asyncio.get_running_loop()
    box = _boxes.get(loop)
    if box is None:
        box = _boxes[loop] = Postbox(loop)
    return box


def _deliver(mailbox: ClientMailbox, futures: dict[int, asyncio.Future[Any]]) -> None:
    for number, outcome in mailbox.take():
        future = futures.get(number)
        if future is None or future.done():
            continue  # withdrawn meanwhile
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
