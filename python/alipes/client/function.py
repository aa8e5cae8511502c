"""A function as its server describes it: arguments become inputs, outputs the value that it has returned."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from alipes.config.nearest import nearest_first
from alipes.datatypes import array_type
from alipes.errors import InvalidArgument, TransportError
from alipes.fitting import as_type

__all__ = ["PARAMETER", "Function", "FunctionArgument", "read_function"]

PARAMETER: Final = "signature"
"""The parameter of a configuration that describes a function."""

_DOCUMENT: Final = "document"
"""Name of the tensors that carry arguments and result as JSON, where they are no tensors themselves."""

_OF_CLIENT: Final = ("timeout", "timeout_s")
"""What a call cannot take beside the arguments of the function."""

_SINGLE: Final = ("scalar", "text")
_TEXTS: Final = ("text", "texts")

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """An argument of a function.

    Attributes:
        name: Its name.
        type: Its annotation, as text.
        required: Whether it has no default.
        default: Its default, where that can be said.
        has_default: Whether it can.
        input: The input tensor that carries it; empty where a document carries all.
        form: How its value looks beside the tensor.
    """

    name: str
    type: str
    required: bool
    default: Any = None
    has_default: bool = False
    input: str = ""
    form: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that a server has.

    Attributes:
        name: Its name.
        arguments: By name, in their order.
        result: Annotation of its result, as text.
        forms: How each output looks beside its tensor; of a document, `json` or `bytes`.
        is_tuple: Whether the outputs are the parts of a tuple.
        rows: Whether a request is a row of a batch.
        is_stream: Whether a call has any number of results.
        summary: What it does.
    """

    name: str
    arguments: Mapping[str, FunctionArgument]
    result: str
    forms: Mapping[str, str] | str
    is_tuple: bool
    rows: bool
    is_stream: bool
    summary: str

    def inputs(self, values: Mapping[str, Any], datatypes: Mapping[str, str]) -> dict[str, Array]:
        """The inputs that carry arguments.

        Args:
            values: The arguments by name.
            datatypes: Those of the inputs, by name.

        Raises:
            InvalidArgument: If an argument is unknown, missing or of another type.
        """
        self._check(values)
        if isinstance(self.forms, str):
            body = np.empty((1, 1) if self.rows else 1, object)
            body.fill(self._document(values))
            return {_DOCUMENT: body}
        return {
            one.input: self._tensor(one, values[name], datatypes[one.input])
            for name, one in self.arguments.items()
            if name in values and one.input in datatypes
        }

    def value(self, outputs: Mapping[str, Array]) -> Any:
        """What the function has returned.

        Raises:
            TransportError: If the outputs are not those of the function.
        """
        try:
            if isinstance(self.forms, str):
                body = outputs[_DOCUMENT].reshape(-1)[0]
                return body if self.forms == "bytes" else json.loads(body)
            found = {name: self._part(outputs[name], form) for name, form in self.forms.items()}
        except (KeyError, IndexError, ValueError) as error:
            raise TransportError(f"the answer of function '{self.name}' cannot be read: {error}") from error
        if self.is_tuple:
            return tuple(found.values())
        return found["output_0"] if list(found) == ["output_0"] else found

    def _check(self, values: Mapping[str, Any]) -> None:
        takes = ", ".join(f"{one.name}{'' if one.required else '='}" for one in self.arguments.values()) or "nothing"
        for name in values:
            if name not in self.arguments:
                known = nearest_first(name, self.arguments)
                missing = self._missing(values)
                also = f", and '{missing[0]}' is missing" if missing else ""
                if name in _OF_CLIENT:
                    also += f"; how long a call takes belongs to the client: Client(ADDRESS, {name}={values[name]!r})"
                raise InvalidArgument(f"function '{self.name}' has no argument '{name}': it has {known}{also}")
        if missing := self._missing(values):
            raise InvalidArgument(f"function '{self.name}' needs the argument '{missing[0]}': it takes {takes}")

    def _missing(self, values: Mapping[str, Any]) -> list[str]:
        return [name for name, one in self.arguments.items() if one.required and name not in values]

    def _document(self, values: Mapping[str, Any]) -> bytes:
        try:
            return json.dumps(dict(values), default=_plain).encode()
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"the arguments of function '{self.name}' cannot be sent as JSON: {error}") from error

    def _tensor(self, one: FunctionArgument, value: Any, datatype: str) -> Array:
        dtype = array_type(datatype)
        try:
            array = np.asarray(value, dtype) if dtype.kind == "O" else as_type(np.asarray(value), dtype)
            if one.form in _SINGLE:
                array = array.reshape(1)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgument(
                f"argument '{one.name}' of function '{self.name}' takes {one.type}: {_bare(error)}", model=self.name
            ) from error
        return array[np.newaxis] if self.rows else array

    def _part(self, array: Array, form: str) -> Any:
        """A value beside its tensor."""
        if form == "array":
            return array[0] if self.rows else array
        values = array.reshape(-1).tolist()
        if form in _TEXTS:
            values = [one.decode() if isinstance(one, bytes) else one for one in values]
        return values[0] if form in _SINGLE else values


def read_function(name: str, config: Mapping[str, Any] | None) -> Function | None:
    """The function that a configuration describes; None for a model that is none.

    Args:
        name: The model's name.
        config: Its configuration as JSON has it.
    """
    parameter = (config or {}).get("parameters", {}).get(PARAMETER, {})
    text = parameter.get("string_value", parameter.get("stringValue", "")) if isinstance(parameter, Mapping) else ""
    try:
        document = json.loads(text)
        result = document["result"]
        return Function(
            name,
            {one["name"]: _argument(one) for one in document["arguments"]},
            str(result["type"]),
            result["form"],
            bool(result["tuple"]),
            bool(document["rows"]),
            bool(document["stream"]),
            str(document["summary"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # a parameter of the model's own
        return None


def _argument(document: Mapping[str, Any]) -> FunctionArgument:
    return FunctionArgument(
        document["name"],
        document["type"],
        bool(document["required"]),
        document.get("default"),
        "default" in document,
        document.get("input", ""),
        document.get("form", ""),
    )


def _bare(error: Exception) -> str:
    """A message of numpy without the names of its own types: `'a'` for `np.str_('a')`."""
    return re.sub(r"np\.\w+\((.*?)\)", r"\1", str(error))


def _plain(value: Any) -> Any:
    """What stands in a document for a value that JSON does not know."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(f"a value of type {type(value).__name__}")
