"""Signals that end the program, held back while something is under way that must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["HeldBack", "held_back"]

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class HeldBack:
    """The signals that were seen, and what is called at each: a handler that raises nothing."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.seen: list[int] = []
        self.stop: Callable[[], object] = lambda: None

    def note(self, number: int, _frame: object) -> None:
        """The handler."""
        self.seen.append(number)
        self.stop()


@contextmanager
def held_back() -> Iterator[HeldBack]:
    """Inside, signals that end the program are noted; behind it they have the effect that they had before.

    Python runs the handler of a signal between any two of its instructions, and what the handler raises leaves whatever
    was under way there half done. On other threads than the main one, which never run handlers, nothing changes.
    """
    held = HeldBack()
    if threading.current_thread() is not threading.main_thread():
        yield held
        return
    before = {number: signal.signal(number, held.note) for number in _ENDING}
    try:
        yield held
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for seen in held.seen:
            signal.raise_signal(seen)
