"""Reads a configuration in protobuf's mapping to JSON: enum names in any case, no unknown field.

Load requests bring one, and `auto_complete_config` of a Python model returns one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from alipes.config.nearest import nearest
from alipes.config.schema import ModelConfig, descriptor, is_map, is_repeated, new_config
from alipes.errors import ConfigError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

__all__ = ["from_document", "parse_override"]

_PREFIX: Final = "Invalid config override: "

_TRUE: Final = ("true", "t", "yes", "y", "1")
_FALSE: Final = ("false", "f", "no", "n", "0")
_WORDS: Final = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}
"""Yes and no as texts. Source: protobuf's reader in C++."""

_STRING_OR_KEY: Final = re.compile(r"""("(?:[^"\\]|\\.)*")|'([^'"\\]*)'|([A-Za-z_]\w*)(?=\s*:)""", re.ASCII | re.DOTALL)
"""A string, one between single quotes, a key without quotes. Source: protobuf's reader in C++ takes all three."""


def parse_override(text: str) -> ModelConfig:
    """Read the `config` parameter of a load request.

    Args:
        text: A JSON object; field names as in the proto file or in lower camel case.

    Raises:
        ConfigError: If the text is no such object; the message begins with "Invalid config override: ".
    """
    try:
        value = _loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{_PREFIX}{error}") from error
    try:
        return from_document(value)
    except ConfigError as error:
        raise ConfigError(f"{_PREFIX}{error}", key=error.key, hint=error.hint) from error


def _loads(text: str) -> Any:
    """The JSON value of a text whose keys may lack their quotes; what is wrong is told of the text as it is."""
    try:
        return json.loads(text)
    except ValueError:
        quoted = _STRING_OR_KEY.sub(lambda found: found[1] or f'"{found[2] or found[3] or ""}"', text)
        try:
            return json.loads(quoted)
        except ValueError:
            pass
        raise


def from_document(value: Any) -> ModelConfig:
    """Read a configuration that was JSON.

    Raises:
        ConfigError: If the value is no object, or one that is no configuration.
    """
    from google.protobuf import json_format

    if not isinstance(value, dict):
        raise ConfigError(f"expected an object, got {type(value).__name__}")
    try:
        return json_format.ParseDict(_message(value, descriptor(), ""), new_config())
    except (json_format.ParseError, RecursionError) as error:
        raise ConfigError(str(error)) from error


def _message(value: dict[str, Any], message: Descriptor, place: str) -> dict[str, Any]:
    """The object with its enum names spelled as the proto file spells them."""
    made: dict[str, Any] = {}
    set_oneofs: set[str] = set()
    known = {name: field for field in message.fields for name in (field.name, field.json_name)}
    for name, content in value.items():
        field = known.get(name)
        if field is None:
            close = nearest(name, message.fields_by_name)
            raise ConfigError(
                f"{_located(place)}: invalid name {name}: Cannot find field.",
                key=name,
                hint=f"did you mean '{close}'?" if close else None,
            )
        if content is None:
            continue
        if (oneof := field.containing_oneof) is not None:
            if oneof.name in set_oneofs:
                raise ConfigError(
                    f"{_located(place)}: invalid value oneof field '{oneof.name}' is already set. "
                    f"Cannot set '{name}' for type oneof",
                    key=name,
                )
            set_oneofs.add(oneof.name)
        made[field.name] = _content(content, field, f"{place}.{name}" if place else name)
    return made


def _content(content: Any, field: FieldDescriptor, place: str) -> Any:
    if field.message_type is not None and is_map(field) and isinstance(content, dict):
        element = field.message_type.fields_by_name["value"]
        return {key: _single(one, element, f'{place}["{key}"]') for key, one in content.items()}
    if not is_repeated(field) or (field.message_type is not None and is_map(field)):
        return _single(content, field, place)
    # One value stands for a list of it, and what is null is not there. Source: protobuf's reader in C++.
    several = content if isinstance(content, list) else [content]
    return [_single(one, field, f"{place}[{index}]") for index, one in enumerate(several) if one is not None]


def _single(content: Any, field: FieldDescriptor, place: str) -> Any:
    if field.enum_type is not None and isinstance(content, str):
        name = content.upper().replace("-", "_")
        if name in field.enum_type.values_by_name:
            return name
        if name in map(str, field.enum_type.values_by_number):
            return int(name)
        close = nearest(name, field.enum_type.values_by_name)
        raise ConfigError(
            f'{_located(place)}: invalid value "{content}" for type type.googleapis.com/{field.enum_type.full_name}',
            key=place,
            hint=f"did you mean '{close}'?" if close else None,
        )
    if field.cpp_type == field.CPPTYPE_BOOL and isinstance(content, str):
        return _WORDS.get(content.lower(), content)
    if field.message_type is None:
        return content
    if not isinstance(content, dict):
        raise ConfigError(f"{_located(place)}: expected an object, got {type(content).__name__}", key=place)
    return _message(content, field.message_type, place)


def _located(place: str) -> str:
    return f"({place})" if place else ""
