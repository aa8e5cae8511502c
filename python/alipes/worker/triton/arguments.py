"""The `TypeError` for wrong arguments, as Triton's own binding words it."""

from __future__ import annotations

__all__ = ["wrong_arguments", "wrong_call"]


def wrong_call(name: str, supported: str, *given: object) -> TypeError:
    """The error of a function that takes other arguments."""
    return _wrong(f"{name}(): incompatible function arguments", supported, given)


def wrong_arguments(supported: str, *given: object) -> TypeError:
    """The error of a constructor that takes other arguments."""
    return _wrong("__init__(): incompatible constructor arguments", supported, given)


def _wrong(what: str, supported: str, given: tuple[object, ...]) -> TypeError:
    seen = ", ".join(map(repr, given))
    return TypeError(f"{what}. The following argument types are supported:\n    1. {supported}\n\nInvoked with: {seen}")
