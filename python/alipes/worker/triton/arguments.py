"""The `TypeError` for wrong arguments, as Triton's own binding words it."""

from __future__ import annotations

__all__ = ["wrong_arguments", "wrong_call"]


def wrong_call(name: str, supported: str, *arguments: object) -> TypeError:
    """The error of a function that takes other arguments."""
    return _wrong(f"{name}(): incompatible function arguments", supported, arguments)


def wrong_arguments(supported: str, *arguments: object) -> TypeError:
    """The error of a constructor that takes other arguments."""
    return _wrong("__init__(): incompatible constructor arguments", supported, arguments)


def _wrong(what: str, supported: str, arguments: tuple[object, ...]) -> TypeError:
    seen = ", ".join(map(repr, arguments))
    return TypeError(f"{what}. The following argument types are supported:\n    1. {supported}\n\nInvoked with: {seen}")
