"""Signals that end a program the way Ctrl-C does, so that it leaves nothing behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

__all__ = ["leaving_on"]


@contextmanager
def leaving_on(*signals: signal.Signals) -> Iterator[None]:
    """Inside, these signals end the program the way Ctrl-C does, so that what was started is stopped first."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
