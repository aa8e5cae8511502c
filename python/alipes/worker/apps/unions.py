"""Unions that nothing in a document tells apart, such as of two dataclasses: the first member that fits is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alipes.worker.apps.misfit import Misfit

__all__ = ["FirstOf", "first_of", "fitting", "name_of"]


class _AnyOf(type):
    """Makes every value an instance of the classes that stand for unions: msgspec asks."""

    def __instancecheck__(cls, value: object) -> bool:
        return True


class FirstOf(metaclass=_AnyOf):
    """Stands for a union in the types that documents are read into; `first_of` makes a subclass for each.

    Attributes:
        members: The types, in their order, as msgspec reads them.
        names: What an error calls them.
    """

    members: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()


def first_of(members: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    """The class that stands for a union."""
    return _AnyOf("FirstOf", (FirstOf,), {"members": members, "names": names})


def fitting(kind: type[FirstOf], value: Any, hook: Callable[[Any, Any], Any]) -> Any:
    """The value as the first member that it fits.

    Args:
        kind: The union.
        value: What the document has there.
        hook: Makes values of types that msgspec does not know.

    Raises:
        Misfit: If it fits none; the text says why for each.
    """
    import msgspec

    reasons = []
    for member, name in zip(kind.members, kind.names, strict=True):
        try:
            return msgspec.convert(value, member, dec_hook=hook)
        except msgspec.ValidationError as error:
            reasons.append(f"{name} ({str(error).replace('`', '')})")
    raise Misfit(f"fits none of {'; '.join(reasons)}")


def name_of(annotation: Any) -> str:
    """An annotation as an error names it."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
