"""Annotations as msgspec reads them: what it cannot read or tell apart becomes a class of ours; the rest is refused."""

from __future__ import annotations

import operator
import types
import typing
from typing import Annotated, Any

from alipes.errors import ConfigError
from alipes.worker.apps.custom import array_of, is_custom
from alipes.worker.apps.json_library import msgspec
from alipes.worker.apps.records import RecordOf, fields_of, is_record, record_of
from alipes.worker.apps.tensor_types import array_spec
from alipes.worker.apps.unions import FirstOf, first_of, name_of

__all__ = ["check", "or_unset", "readable"]


_Records = dict[Any, Any]
"""The classes that stand for dataclasses and typed dictionaries, by these, as far as they are begun."""


def readable(annotation: Any) -> Any:
    """An annotation as msgspec takes it: an array becomes a class that knows its kind, for example."""
    return _readable(annotation, {})


def _readable(annotation: Any, records: _Records) -> Any:
    if (spec := array_spec(annotation)) is not None:
        return array_of(spec)
    origin, items = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        inner = _readable(items[0], records)
        metadata = [one for one in items[1:] if isinstance(one, msgspec.Meta)]
        return Annotated[(inner, *metadata)] if metadata else inner
    if origin in (typing.Union, types.UnionType):
        return _union(items, records)
    if origin in (list, tuple, dict, set, frozenset) and items:
        return origin[tuple(one if one is Ellipsis else _readable(one, records) for one in items)]
    if is_record(annotation):
        return _record(annotation, records)
    return annotation


def _union(items: tuple[Any, ...], records: _Records) -> Any:
    """A union as msgspec takes it; of members that it cannot tell apart, a class that tries them one by one."""
    union: Any = typing.Union[tuple(_readable(one, records) for one in items)]  # noqa: UP007
    try:
        msgspec.json.Decoder(union)
    except NameError:
        return union  # `check` says which name
    except TypeError:
        members = tuple(one for one in items if one is not types.NoneType)
        if len(members) < 2:
            return union
        kind: Any = first_of(tuple(_readable(one, records) for one in members), tuple(name_of(one) for one in members))
        return operator.or_(kind, None) if len(members) < len(items) else kind
    return union


def _record(kind: Any, records: _Records) -> Any:
    """A dataclass or typed dictionary as it is, where msgspec reads all its fields as we do; else a class for it."""
    if kind in records:
        return records[kind]
    try:
        fields = fields_of(kind)
        if not any(_differs(annotation, {kind}) for _, annotation, _ in fields):
            return kind
    except NameError:
        return kind  # `check` says which name
    record = records[kind] = record_of(kind)
    record.struct = msgspec.defstruct(
        kind.__name__, [_field(*field, records) for field in fields], kw_only=True, module=kind.__module__
    )
    return record


def _field(name: str, annotation: Any, required: bool, records: _Records) -> tuple[Any, ...]:
    kind = _readable(annotation, records)
    return (name, kind) if required else (name, or_unset(kind), msgspec.UNSET)


def or_unset(kind: Any) -> Any:
    """The type of a member that a document may leave out."""
    return kind if kind is Any else typing.Union[kind, msgspec.UnsetType]  # noqa: UP007


def _differs(annotation: Any, seen: set[Any]) -> bool:
    """Whether a class of ours stands somewhere within what msgspec is to read."""
    if is_record(annotation):
        if annotation in seen:
            return False
        seen.add(annotation)
        return any(_differs(one, seen) for _, one, _ in fields_of(annotation))
    if array_spec(annotation) is not None:
        return typing.get_origin(annotation) is Annotated  # msgspec leaves out what it says of shape and type
    origin, items = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType) and _is_ambiguous(items):
        return True
    return any(_differs(one, seen) for one in items if one is not Ellipsis)


def _is_ambiguous(items: tuple[Any, ...]) -> bool:
    """Whether msgspec cannot tell the members of a union apart, each as it is: one of them may be the class itself."""
    kinds = tuple(one if (spec := array_spec(one)) is None else array_of(spec) for one in items)
    if sum(one is not types.NoneType for one in kinds) < 2:
        return False
    try:
        msgspec.json.Decoder(typing.Union[kinds])  # noqa: UP007
    except NameError:
        return False  # `check` says which name
    except TypeError:
        return True
    return False


def check(kind: Any, model: str, argument: str, annotation: Any) -> None:
    """Makes sure that msgspec can read a type, or we can."""
    name = name_of(annotation)
    for member, text in _parts(kind, set()):
        _check(member, model, argument, text)
    _check(kind, model, argument, name)


def _check(kind: Any, model: str, argument: str, name: str) -> None:
    try:
        seen = msgspec.inspect.type_info(kind)
    except NameError as error:  # within a class; those of the function itself are read before
        raise ConfigError(
            f"model '{model}': argument '{argument}' is {name}, whose annotations name '{error.name}', which is not "
            "there when the app is imported: import it outside of `if TYPE_CHECKING`, or define it"
        ) from error
    except Exception as error:
        text = str(error).partition("\n")[0]
        raise ConfigError(
            f"model '{model}': argument '{argument}' is {name}, which cannot be read: {text}; take numbers, texts, "
            "lists, dictionaries, dataclasses, pydantic models, bytes, pictures or arrays"
        ) from error
    if (custom := _strange(seen, set())) is not None:
        raise ConfigError(
            f"model '{model}': argument '{argument}' has the type {custom.__module__}.{custom.__qualname__}, which no "
            "document can hold; take numbers, texts, lists, dictionaries, dataclasses, pydantic models, bytes, "
            "pictures or arrays"
        )


def _own(kind: Any) -> list[Any]:
    """The classes of ours within a type that stand for unions, dataclasses and typed dictionaries."""
    if isinstance(kind, type) and issubclass(kind, FirstOf | RecordOf):
        return [kind]
    return [own for one in typing.get_args(kind) for own in _own(one)]


def _parts(kind: Any, seen: set[Any]) -> list[tuple[Any, str]]:
    """What the classes of ours within a type read in their turn, and what an error calls it."""
    found: list[tuple[Any, str]] = []
    for own in _own(kind):
        if own in seen:
            continue
        seen.add(own)
        if issubclass(own, FirstOf):
            inner = list(zip(own.members, own.names, strict=True))
        else:
            inner = [(own.struct, name_of(own.kind))]
        found += inner
        for one, _ in inner:
            kinds = [field.type for field in msgspec.structs.fields(one)] if _is_struct(one) else [one]
            found += [part for each in kinds for part in _parts(each, seen)]
    return found


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _strange(seen: Any, done: set[int]) -> Any:
    """The first type within another that nothing can make of a document; None where there is none."""
    if id(seen) in done:
        return None
    done.add(id(seen))
    if isinstance(seen, msgspec.inspect.CustomType):
        return None if is_custom(seen.cls) else seen.cls
    for name in getattr(seen, "__struct_fields__", ()):
        value = getattr(seen, name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, msgspec.inspect.Type | msgspec.inspect.Field) and (found := _strange(one, done)):
                return found
    return None
