"""Signals that end a program the way Ctrl-C does, so that it leaves nothing behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import NoReturn

__all__ = ["leaving_on_signals"]


@contextmanager
def leaving_on_signals() -> Iterator[None]:
    """Inside, `SIGTERM` and `SIGHUP` end the program the way Ctrl-C does, so that what was started is stopped first.

    Threads other than the main one cannot say what signals do: nothing changes there.
    """
    if current_thread() is not main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
