"""Element types: the names of configuration files beside the names of the V2 protocol."""

from __future__ import annotations

from typing import Final

from alipes.config.schema import enum_names

__all__ = ["INVALID", "config_name", "config_number", "element_bytes", "v2_name"]

INVALID: Final = 0
"""The number of a datatype that was not given."""

_ENUM: Final = "inference.DataType"
_OTHER_NAMES: Final = {"TYPE_STRING": "BYTES", "TYPE_INVALID": "<invalid>"}

_BYTES: Final = {
    "TYPE_BOOL": 1,
    "TYPE_UINT8": 1,
    "TYPE_UINT16": 2,
    "TYPE_UINT32": 4,
    "TYPE_UINT64": 8,
    "TYPE_INT8": 1,
    "TYPE_INT16": 2,
    "TYPE_INT32": 4,
    "TYPE_INT64": 8,
    "TYPE_FP16": 2,
    "TYPE_FP32": 4,
    "TYPE_FP64": 8,
    "TYPE_BF16": 2,
}


def config_name(number: int) -> str:
    """The name in configuration files, for example `TYPE_STRING`; `TYPE_INVALID` for what is no datatype."""
    names = enum_names(_ENUM)
    return names.get(number, names[INVALID])


def v2_name(number: int) -> str:
    """The V2 name of a datatype in a configuration, for example `BYTES`; `<invalid>` for what is no datatype."""
    name = config_name(number)
    return _OTHER_NAMES.get(name, name.removeprefix("TYPE_"))


def config_number(v2: str) -> int:
    """The number in configuration files of a V2 name; `INVALID` for what is no datatype."""
    return next((number for number in enum_names(_ENUM) if v2_name(number) == v2), INVALID)


def element_bytes(number: int) -> int | None:
    """Bytes of one element; None for strings, whose elements differ, and for what is no datatype."""
    return _BYTES.get(config_name(number))
