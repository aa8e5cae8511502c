"""The options of a request: what it may say beside its tensors, as a caller writes it and as it is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict
from urllib.parse import quote

import numpy as np

from alipes.client.arguments import request_error, seconds, version_text
from alipes.config.nearest import ALIKE, nearest, nearest_first
from alipes.errors import InvalidArgument

__all__ = ["Options", "RequestOptions", "flag", "identifier", "read_options"]


@dataclass(frozen=True, slots=True)
class Options:
    """The fields of a request beside its tensors.

    Attributes:
        version: The version; empty leaves the choice to the server.
        request_id: Repeated in the response, and in errors.
        sequence_id: The sequence that the request belongs to.
        sequence_start: Whether this request starts the sequence.
        sequence_end: Whether this request ends the sequence.
        priority: 1 is highest, 0 is the model's default.
        queue_timeout_s: The longest wait in the model's queue.
        parameters: The model's own parameters.
        headers: Headers of this request alone, beside those of the client; metadata, over gRPC.
    """

    version: str = ""
    request_id: str = ""
    sequence_id: int | str | None = None
    sequence_start: bool = False
    sequence_end: bool = False
    priority: int = 0
    queue_timeout_s: float | None = None
    parameters: Mapping[str, bool | int | float | str] | None = None
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def queue_timeout_us(self) -> int:
        """The longest wait in the model's queue in microseconds, as the protocol has it; 0 is that none was passed."""
        return 0 if self.queue_timeout_s is None else max(round(self.queue_timeout_s * 1e6), 1)

    def as_parameters(self) -> dict[str, bool | int | float | str] | None:
        """All fields as parameters of the protocol; `None` where there are none."""
        fields: dict[str, bool | int | float | str] = {}
        if self.sequence_id:
            fields["sequence_id"] = self.sequence_id
            fields["sequence_start"] = self.sequence_start
            fields["sequence_end"] = self.sequence_end
        if self.priority:
            fields["priority"] = self.priority
        if self.queue_timeout_us:
            fields["timeout"] = self.queue_timeout_us
        if self.parameters:
            fields |= self.parameters
        return fields or None


class RequestOptions(TypedDict, total=False):
    """The options that `infer`, `ask` and `stream` take by name: the fields of `Options`.

    Attributes:
        version: The version, a number or the same as text; the server's choice by default.
        model_version: The same under tritonclient's name.
        request_id: Repeated in the response, and in errors.
        sequence_id: The sequence that the request belongs to.
        sequence_start: Whether this request starts the sequence.
        sequence_end: Whether this request ends the sequence.
        priority: 1 is highest, 0 is the model's default.
        queue_timeout_s: The longest wait in the model's queue.
        parameters: The model's own parameters.
        headers: Headers of this request alone, beside those of the client; metadata, over gRPC.
    """

    version: int | str | None
    model_version: int | str | None
    request_id: str
    sequence_id: int | str | None
    sequence_start: bool
    sequence_end: bool
    priority: int
    queue_timeout_s: float | None
    parameters: Mapping[str, bool | int | float | str] | None
    headers: Mapping[str, str] | None


_SEQUENCE_HEADER: Final = "x-sequence-id"
"""What stands in front of several servers reads it, and sends all requests of a sequence to one of them."""

_KNOWN: Final = frozenset(RequestOptions.__annotations__)
_ARGUMENTS_BESIDE: Final = ("outputs", "timeout", "timeout_s")
"""Arguments that the methods take themselves: a message about an unknown name offers them, too."""

_MOST_ID: Final = 2**64 - 1
_MOST_NUMBER: Final = 2**63 - 1
"""The protocol has 64 bits for a number: those of a sequence's id have no sign."""

_NONE: Final = Options()


def read_options(options: RequestOptions | Mapping[str, Any]) -> Options:
    """The options of a request, checked.

    Raises:
        InvalidArgument: If a name is unknown, or a value is of another type.
    """
    if not options:
        return _NONE
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name not in _KNOWN:
            known = nearest_first(name, [*_KNOWN, *_ARGUMENTS_BESIDE])
            is_input = nearest(name, [*_KNOWN, *_ARGUMENTS_BESIDE], ALIKE) is None
            mend = f"inputs go into one dictionary, {{'{name}': ...}}; options are" if is_input else "there are"
            raise InvalidArgument(f"a request has no option '{name}': {mend} {known}")
        if value is not None and name in _CHECKS:
            fields[name] = _CHECKS[name](name, value)
    fields["version"] = version_text(options.get("version"), options.get("model_version"))
    return Options(**fields)


def sequence_header(sequence_id: int | str | None, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The header that says the sequence of a stream of responses, as the data plane says that of other requests.

    Args:
        sequence_id: The sequence; nothing, 0 and the empty text are none.
        headers: The caller's own, which count more.
    """
    if not sequence_id or any(name.lower() == _SEQUENCE_HEADER for name, _ in headers):
        return []
    return [(_SEQUENCE_HEADER, quote(str(sequence_id), safe=""))]


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise request_error(name, f"text such as '{value}'" if isinstance(value, int) else "text", value)


def flag(name: str, value: Any) -> bool:
    """A value that is true or false.

    Raises:
        InvalidArgument: If it is neither.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise request_error(name, "True or False", value)


def _priority(name: str, value: Any) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value <= _MOST_NUMBER:
        return int(value)
    raise request_error(name, "a whole number from 0 on", value)


def identifier(name: str, value: Any) -> int | str:
    """The id of a sequence.

    Raises:
        InvalidArgument: If it is of another type, or no server takes it.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value <= _MOST_ID:
        return int(value)
    raise request_error(name, "a whole number of 64 bits without a sign, or text", value)


def _parameters(name: str, value: Any) -> Mapping[str, bool | int | float | str]:
    if not isinstance(value, Mapping):
        raise request_error(name, "a dictionary", value)
    for key, item in value.items():
        if not isinstance(key, str) or not isinstance(item, (bool, int, float, str)):
            raise request_error(f"{name}[{key!r}]", "a text, a number, True or False, with a text as its name", item)
        if isinstance(item, int) and not -_MOST_NUMBER <= item <= _MOST_NUMBER:
            raise request_error(f"{name}[{key!r}]", "a number of 64 bits", item)
    return value


def _headers(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping):
        raise request_error(name, "a dictionary of texts", value)
    for key, item in value.items():
        if not isinstance(key, str) or not isinstance(item, str):
            raise request_error(f"{name}[{key!r}]", "a text, with a text as its name", item)
    return tuple(value.items())


_CHECKS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "request_id": _text,
    "sequence_id": identifier,
    "sequence_start": flag,
    "sequence_end": flag,
    "priority": _priority,
    "queue_timeout_s": seconds,
    "parameters": _parameters,
    "headers": _headers,
}
"""Option -> its check; the version has one of its own."""
