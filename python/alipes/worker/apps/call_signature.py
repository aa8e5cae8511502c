"""What a client has to know to call a function in the words of its signature; it stands in the configuration."""

from __future__ import annotations

import collections.abc
import inspect
import json
import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import numpy as np

from alipes.worker.apps.custom import is_picture
from alipes.worker.apps.plan import Argument, Plan
from alipes.worker.apps.tensor_types import TensorType, array_spec

__all__ = ["call_signature", "type_text"]

_NAMES: Final = {bool: "bool", int: "int", float: "float", str: "str", bytes: "bytes", type(None): "None"}
_NUMBERS: Final = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str", "S": "bytes"}
_LISTS: Final = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Iterator, set, frozenset)
_DICTIONARIES: Final = (dict, collections.abc.Mapping)
_UNIONS: Final = (typing.Union, types.UnionType)
_GENERICS: Final[dict[Any, str]] = {Literal: "Literal", tuple: "tuple"}
_GENERICS.update(dict.fromkeys(_LISTS, "list"))
_GENERICS.update(dict.fromkeys(_DICTIONARIES, "dict"))


def call_signature(served: Any, plan: Plan) -> dict[str, Any]:
    """A function's arguments and its result, as JSON.

    Args:
        served: The function or class.
        plan: What it takes and gives.

    Returns:
        `arguments` in their order: `name`, `type`, `required` and `default`; of a function that is asked with tensors
        `input` and `form` too. `result`: its `type` and the `form` of each output by name, or, of a document, `json` or
        `bytes`. `rows` where a request is a row of a batch, `stream` where it has any number of results, and `summary`.
    """
    is_file = plan.result is bytes or is_picture(plan.result)
    forms: Any = "bytes" if is_file else "json"
    if plan.has_tensors and plan.outputs is not None:
        forms = {name: _form(tensor) for name, tensor in plan.outputs.items()}
    return {
        "arguments": [_argument(one, tensors=plan.has_tensors) for one in plan.arguments],
        "result": {"type": type_text(plan.result), "form": forms, "tuple": typing.get_origin(plan.result) is tuple},
        "rows": plan.batched,
        "stream": plan.is_stream,
        "summary": (inspect.getdoc(served) or "").partition("\n")[0],
    }


def type_text(annotation: Any) -> str:
    """An annotation as a module of a client has it, without imports of the app: `Array` stands for arrays."""
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated and array_spec(annotation) is None:
        return type_text(members[0])
    return _plain_text(annotation) or _generic_text(origin, members) or "Any"


def _plain_text(annotation: Any) -> str:
    """A type that has no members; empty for others."""
    if annotation in _NAMES:
        return _NAMES[annotation]
    if array_spec(annotation) is not None:
        return "Array"
    if is_picture(annotation):
        return "bytes"
    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        return _NUMBERS.get(np.dtype(annotation).kind, "Any")
    return "dict[str, Any]" if _has_fields(annotation) else ""


def _generic_text(origin: Any, members: Sequence[Any]) -> str:
    """A type with members, each as text; empty for others."""
    texts = ["..." if member is Ellipsis else type_text(member) for member in members if origin is not Literal]
    if origin in _UNIONS:
        return " | ".join(dict.fromkeys(texts))
    name = _GENERICS.get(origin, "")
    return f"{name}[{', '.join(map(_member, members) if origin is Literal else texts)}]" if name else ""


def _member(value: Any) -> str:
    """A member of a `Literal`; texts in double quotes, as formatters have them."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _has_fields(annotation: Any) -> bool:
    """Whether values are objects in a document: of a dataclass, a `TypedDict`, a model of msgspec or pydantic."""
    marks = ("__dataclass_fields__", "_fields", "__struct_fields__", "__pydantic_validator__")
    return typing.is_typeddict(annotation) or any(hasattr(annotation, mark) for mark in marks)


def _argument(one: Argument, *, tensors: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"name": one.name, "type": type_text(one.annotation), "required": one.required}
    if not one.required:
        found |= _default(one.default)
    if tensors and one.tensor is not None:
        found |= {"input": one.input or one.name, "form": _form(one.tensor)}
    return found


def _default(value: Any) -> dict[str, Any]:
    """The default, where JSON has it; a client leaves the argument out in any case."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {}
    return {"default": value}


def _form(tensor: TensorType) -> str:
    """How a value looks beside its tensor: `scalar`, `text`, `list`, `texts` or `array`; texts are UTF-8."""
    if tensor.form == "array":
        return "array"
    is_text = tensor.python is str
    if tensor.form == "scalar" or tensor.is_row:
        return "text" if is_text else "scalar"
    return "texts" if is_text else "list"
