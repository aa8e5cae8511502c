"""Signals that end the program, held back while something is made that must not be left half made."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["held_back"]

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def held_back() -> Iterator[None]:
    """Inside, signals that end the program are noted; behind it they have the effect that they had before.

    Python runs the handler of a signal between any two of its instructions, and what the handler raises leaves whatever
    was under way there half done. On other threads than the main one, which never run handlers, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    before = {number: signal.signal(number, lambda number, _: noted.append(number)) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for seen in noted:
            signal.raise_signal(seen)
