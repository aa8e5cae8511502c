"""Arguments that fit an annotation, for the API page."""

from __future__ import annotations

import base64
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import types
import typing
import uuid
from functools import cache
from typing import Annotated, Any, Final, Literal

import numpy as np

from alipes.worker.apps.custom import is_picture, is_pydantic, png
from alipes.worker.apps.plan import Argument
from alipes.worker.apps.tensor_types import ArraySpec, array_spec

__all__ = ["example_of", "picture_in_base64"]

_PLAIN: Final[dict[Any, Any]] = {
    bool: True,
    int: 1,
    float: 1.5,
    str: "text",
    bytes: base64.b64encode(b"bytes").decode(),
    type(None): None,
    None: None,
    Any: "anything",
    datetime.datetime: "2026-01-01T12:00:00Z",
    datetime.date: "2026-01-01",
    datetime.time: "12:00:00",
    decimal.Decimal: "1.5",
    uuid.UUID: "00000000-0000-4000-8000-000000000000",
}
_LISTS: Final = (list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable)
_SIZE: Final = 2
"""Size of an array's axis that may have any."""


def example_of(arguments: typing.Iterable[Argument]) -> dict[str, Any]:
    """A document that the arguments can be read from; those with a default are left to it, but for the last resort."""
    return {one.name: _example(one.annotation) for one in arguments if one.required}


@cache
def picture_in_base64() -> str:
    """A small picture as documents hold it."""
    from PIL import Image

    return base64.b64encode(png(Image.new("RGB", (8, 8), "orange"))).decode()


def _example(annotation: Any, depth: int = 0) -> Any:  # noqa: PLR0911 - a table of kinds
    if depth > 8:  # a type that holds itself
        return None
    if (spec := array_spec(annotation)) is not None:
        return _array(spec)
    if isinstance(annotation, collections.abc.Hashable) and annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        return _of_class(annotation, depth)
    origin, items = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _example(items[0], depth)
    if origin is Literal:
        return items[0]
    if origin in (typing.Union, types.UnionType):
        return _example(next(one for one in items if one is not type(None)), depth)
    if origin is tuple:
        return [_example(one, depth + 1) for one in items if one is not Ellipsis]
    if origin in (dict, collections.abc.Mapping):
        return {str(_example(items[0], depth + 1)): _example(items[1], depth + 1)}
    if origin in _LISTS:
        return [_example(items[0], depth + 1)]
    return None


def _of_class(kind: Any, depth: int) -> Any:
    if is_picture(kind):
        return picture_in_base64()
    if issubclass(kind, enum.Enum):
        return next(iter(kind)).value
    if is_pydantic(kind):
        fields: Any = kind.model_fields
        return {
            field.alias or name: _example(field.annotation, depth + 1)
            for name, field in fields.items()
            if field.is_required()
        }
    if issubclass(kind, dict) and hasattr(kind, "__required_keys__"):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {name: _example(hints[name], depth + 1) for name in kind.__required_keys__}
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        missing = dataclasses.MISSING
        return {
            one.name: _example(hints[one.name], depth + 1)
            for one in dataclasses.fields(kind)
            if one.default is missing and one.default_factory is missing
        }
    return {} if kind is dict else [] if kind in (list, tuple, set) else None


def _array(spec: ArraySpec) -> Any:
    shape = [_SIZE if size is None else size for size in (spec.shape if spec.shape is not None else (None,))]
    kind = spec.dtype.kind if spec.dtype is not None else "f"
    value: Any = {"b": True, "i": 1, "u": 1, "f": 1.5}.get(kind, "text")
    array: Any = np.full(shape, value, object).tolist()
    return array
