"""What of a `model.py` makes the module that weights belong to; exports look for the same."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

__all__ = ["CODE", "FACTORY", "NoFactoryError", "find_factory"]

CODE: Final = "model.py"
"""The file that makes the module."""

FACTORY: Final = "make"
"""The function in it that does, without arguments."""


class NoFactoryError(Exception):
    """A file makes no module; the message says what it has instead, and what to write."""


def find_factory(source: ModuleType, base: type) -> Callable[[], Any]:
    """The factory of a file: its function `make`, else the one module class that it defines, as Triton takes it.

    Args:
        source: The file, imported.
        base: `torch.nn.Module`.

    Raises:
        NoFactoryError: If it has neither.
    """
    make = getattr(source, FACTORY, None)
    if callable(make):
        found: Callable[[], Any] = make
        return found
    members = [one for one in vars(source).values() if isinstance(one, type) and issubclass(one, base)]
    classes = [one for one in members if one.__module__ == source.__name__]
    if len(classes) == 1:
        return classes[0]
    has = "no class" if not classes else f"{len(classes)} classes ({', '.join(one.__name__ for one in classes)})"
    raise NoFactoryError(
        f"{CODE} has no function {FACTORY}(), and {has} derived from torch.nn.Module; write {FACTORY}(), which gives "
        "the module"
    )
