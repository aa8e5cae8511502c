"""Dataclasses and typed dictionaries with fields that msgspec cannot read by itself.

Such are arrays of one shape, and unions that nothing in a document tells apart.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from typing import Any

from alipes.worker.apps.misfit import Misfit, misfit_of

__all__ = ["RecordOf", "fields_of", "is_record", "made", "record_of"]


class _AnyRecord(type):
    """Makes every value an instance of the classes that stand for others: msgspec asks."""

    def __instancecheck__(cls, value: object) -> bool:
        return True


class RecordOf(metaclass=_AnyRecord):
    """Stands for one of them in the types that documents are read into; `record_of` makes a subclass for each.

    Attributes:
        kind: The dataclass or typed dictionary.
        struct: Its fields as msgspec reads them; those with a default may be missing.
    """

    kind: Any = None
    struct: Any = None


def is_record(annotation: Any) -> bool:
    """Whether an annotation is a dataclass or a typed dictionary."""
    return isinstance(annotation, type) and (dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation))


def record_of(kind: Any) -> Any:
    """The class that stands for another, whose `struct` is to come: a field may hold the class itself."""
    return _AnyRecord(kind.__name__, (RecordOf,), {"kind": kind})


def fields_of(kind: Any) -> list[tuple[str, Any, bool]]:
    """The fields that a document has: name, annotation, and whether it has to be there.

    Raises:
        NameError: If an annotation names what is not there.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    if typing.is_typeddict(kind):
        return [(name, _plain(hint), name in kind.__required_keys__) for name, hint in hints.items()]
    missing = dataclasses.MISSING
    return [
        (one.name, hints[one.name], one.default is missing and one.default_factory is missing)
        for one in dataclasses.fields(kind)
        if one.init
    ]


def _plain(hint: Any) -> Any:
    """An annotation without the word that says whether its key has to be there."""
    says = typing.get_origin(hint) in (typing.Required, typing.NotRequired)
    return typing.get_args(hint)[0] if says else hint


def made(kind: type[RecordOf], value: Any, hook: Callable[[Any, Any], Any]) -> Any:
    """The value as the dataclass or typed dictionary.

    Args:
        kind: Stands for it.
        value: What the document has there.
        hook: Makes values of types that msgspec does not know.

    Raises:
        Misfit: If it does not fit.
    """
    import msgspec

    try:
        found = msgspec.convert(value, kind.struct, dec_hook=hook)
    except msgspec.ValidationError as error:
        raise misfit_of(error) from error
    fields = {name: one for name, one in msgspec.structs.asdict(found).items() if one is not msgspec.UNSET}
    try:
        return kind.kind(**fields)
    except (TypeError, ValueError) as error:  # of its `__post_init__`
        raise Misfit(str(error)) from error
