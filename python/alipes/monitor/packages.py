"""Packages on their way through a process: when they are taken, what they hold, how they become arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from alipes.monitor.wrapper import ExceptionWrapper

__all__ = ["Turns", "hand_over", "opened"]


class Turns:
    """A turn at any time, until a condition holds."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        """Takes the condition."""
        self._condition = condition

    def __iter__(self) -> Iterator[None]:
        """The turns."""
        while not self._condition():
            yield


def opened(package: Any) -> Any:
    """What a package holds.

    Raises:
        StopIteration: If it says that nothing follows.
        BaseException: Whatever was raised where it comes from.
    """
    if isinstance(package, ExceptionWrapper):
        package.reraise()
    if isinstance(package, StopIteration) or package is StopIteration:
        raise StopIteration
    return package


def hand_over(process: Any, package: Any) -> None:
    """Calls `process` with a package: with its parts where they fit, else with it as a whole.

    Parts are those of a tuple or a list, and of anything else but a dictionary or a text where the whole does not fit.
    """
    bind = inspect.signature(process).bind
    if isinstance(package, tuple | list):
        parts = _fits(bind, *package)
    else:
        several = isinstance(package, Iterable) and not isinstance(package, dict | str | bytes)
        parts = several and not _fits(bind, package) and _fits(bind, *package)
    process(*package) if parts else process(package)


def _fits(bind: Callable[..., object], *arguments: Any) -> bool:
    try:
        bind(*arguments)
    except TypeError:
        return False
    return True
