"""What stands in for a name that scripts import and that nothing here is behind: it can be imported, not used."""

from __future__ import annotations

from typing import Any, NoReturn

from alipes.errors import NotOffered

__all__ = ["absent"]


class _Absent(type):
    """The class of such names: each is a class itself, so that annotations and `isinstance` checks go on working."""

    _reason: str

    def __call__(cls, *arguments: Any, **options: Any) -> NoReturn:
        raise NotOffered(cls._reason)

    def __getattr__(cls, name: str) -> NoReturn:
        # What Python itself looks for on any class is simply not there.
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotOffered(cls._reason)


def absent(module: str, name: str, reason: str) -> type:
    """A class of a name that says on use why there is nothing behind it.

    Args:
        module: The module that the script imports it from.
        name: What it is called there.
        reason: Why it is not offered, and what to do instead.
    """
    return _Absent(name, (), {"__module__": module, "_reason": f"{module}.{name} is not offered: {reason}"})
