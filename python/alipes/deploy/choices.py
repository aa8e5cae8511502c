"""Which words a value of a description may be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import inspect

from alipes.config.nearest import nearest

__all__ = ["of_choices"]

_REFUSED: Final = re.compile(r"^Invalid enum value (.*)$", re.DOTALL)
"""What msgspec says of a word that is none of the choices: it does not name them."""
_STEPS: Final = re.compile(r"\[[^\]]*\]|[^.\[\]]+")


def of_choices(what: str, described: type, place: str) -> str:
    """A message of msgspec, with the choices where it is about a word that is none of them.

    Args:
        what: The message, without its place.
        described: The type that was expected of the whole.
        place: Of the value in it, such as `tolerations[0].operator`.
    """
    refused = _REFUSED.match(what)
    choices = _choices(described, place) if refused else []
    if not refused or not choices:
        return what
    close = nearest(refused[1].strip("'"), choices)
    return f"{refused[1]} is none of {', '.join(choices)}" + (f"; did you mean {close}?" if close else "")


def _choices(described: type, place: str) -> list[str]:
    kinds: list[Any] = [inspect.type_info(described)]
    for step in _STEPS.findall(place):
        kinds = [inner for kind in kinds for inner in _inside(kind, step)]
    found = [one for kind in kinds for one in _members(kind) if isinstance(one, inspect.LiteralType)]
    return [str(word) for one in found for word in one.values if word != ""]


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
