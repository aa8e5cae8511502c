"""A load test that somebody ended before its time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Generic, TypeVar

__all__ = ["Interrupted", "interrupts_held"]

Result = TypeVar("Result")


class Interrupted(KeyboardInterrupt, Generic[Result]):
    """Ctrl-C while a load test ran.

    Attributes:
        result: What was measured until then.
    """

    def __init__(self, result: Result) -> None:
        """Takes it."""
        super().__init__("the load test was interrupted")
        self.result = result


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Inside, Ctrl-C waits for the end of the block: what was read from the engine would be lost in its middle."""
    held: list[FrameType | None] = []
    if threading.current_thread() is not threading.main_thread():  # signals go to the main thread
        yield
        return
    before = signal.signal(signal.SIGINT, lambda _number, frame: held.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held and callable(before):
            before(signal.SIGINT, held[0])
