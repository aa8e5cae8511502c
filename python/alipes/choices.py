"""Which words a value may be, where a type of msgspec lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import inspect

__all__ = ["choices_at"]

_STEPS: Final = re.compile(r"\[[^\]]*\]|[^.\[\]]+")


def choices_at(described: Any, place: str) -> list[str]:
    """The words that a value may be, as JSON has them; none where its type lists none.

    Args:
        described: The type of the whole.
        place: Of the value in it, such as `tolerations[0].operator`.
    """
    kinds: list[Any] = [inspect.type_info(described)]
    for step in _STEPS.findall(place):
        kinds = [inner for kind in kinds for inner in _inside(kind, step)]
    return [str(word) for kind in kinds for one in _members(kind) for word in _words(one) if word != ""]


def _words(kind: Any) -> tuple[Any, ...]:
    if isinstance(kind, inspect.LiteralType):
        return kind.values
    if isinstance(kind, inspect.EnumType):
        return tuple(member.value for member in kind.cls)
    return ()


def _inside(kind: Any, step: str) -> Iterator[Any]:
    """The types of what lies in a value of a type: under a name, or in a list."""
    for member in _members(kind):
        if isinstance(member, inspect.StructType):
            yield from (field.type for field in member.fields if field.encode_name == step)
        elif isinstance(member, inspect.DictType):
            yield member.value_type
        elif isinstance(member, inspect.ListType | inspect.VarTupleType) and step.startswith("["):
            yield member.item_type


def _members(kind: Any) -> Iterator[Any]:
    """The types that a type is one of: itself, but for unions."""
    if isinstance(kind, inspect.Metadata):
        yield from _members(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for member in kind.types:
            yield from _members(member)
    else:
        yield kind
