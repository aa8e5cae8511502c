"""A function that is called again and again, on a thread of its own, while a block runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["periodic"]


@contextmanager
def periodic(call: Callable[[], bool], period_s: float, name: str) -> Iterator[None]:
    """Calls a function for the length of a block. The block's end waits for a call that runs.

    Args:
        call: The function: returns whether it is to be called again.
        period_s: Seconds before the first call, and between the end of one call and the beginning of the next.
        name: The thread's name.
    """
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(period_s) and call():
            pass

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
