"""Loops whose end is far away."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from typing import Final, TypeVar

from alipes.progress.work import line

__all__ = ["track"]

_Item = TypeVar("_Item")

_APART_S: Final = 0.1
"""Between two looks at the count: what goes by in microseconds is not slowed by being counted."""


def track(items: Iterable[_Item], title: str, total: int | None = None, *, show: bool | None = None) -> Iterator[_Item]:
    """The items, with a line that says how many of them have gone by.

    Args:
        items: What is gone through.
        title: What it is.
        total: How many there are; found out where they can be counted.
        show: False shows nothing.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with line(title, total, show=show) as shown:
        if not shown.shown:
            yield from items
            return
        shown_s = time.monotonic()
        uncounted = 0
        for item in items:
            yield item
            uncounted += 1
            if (now := time.monotonic()) - shown_s >= _APART_S:
                shown.advance(uncounted)
                shown_s, uncounted = now, 0
        shown.advance(uncounted)
