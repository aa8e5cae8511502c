"""Coroutines for functions that are plain: they run on the event loop of a thread, while the function waits.

The function's thread looks now and then whether its caller is still there, and cancels the coroutine where it is not.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, Final

from alipes.errors import Cancelled
from alipes.worker.apps.callers import has_left

__all__ = ["awaited"]

_LOOK_S: Final = 0.05
"""Seconds between two looks for a caller that has left."""

_loops: Final[dict[int, asyncio.AbstractEventLoop]] = {}
"""The loop of this process; a process that was forked begins one of its own."""
_starting: Final = threading.Lock()


def awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns, which runs in the context of the calling thread.

    Raises:
        Cancelled: If the caller for whom the thread computes has left.
        BaseException: What the coroutine raises.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, _loop())
    try:
        while True:
            try:
                return future.result(_LOOK_S)
            except TimeoutError:
                if future.done():
                    return future.result()
            if has_left():
                raise Cancelled("the caller has left")
    finally:
        future.cancel()  # nothing, where it has ended


def _loop() -> asyncio.AbstractEventLoop:
    process = os.getpid()
    loop = _loops.get(process)
    if loop is not None:
        return loop
    with _starting:
        if process not in _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="alipes-predictor-calls", daemon=True).start()
            _loops[process] = loop
        return _loops[process]
