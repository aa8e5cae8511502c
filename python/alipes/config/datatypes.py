"""Element types: the names of configuration files beside the names of the V2 protocol."""

from __future__ import annotations

from typing import Final

__all__ = ["config_name", "element_bytes", "v2_name"]

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
    "TYPE_STRING": None,
    "TYPE_BF16": 2,
}
_NAMES: Final = tuple(["TYPE_INVALID", *_BYTES])
"""By their number in configuration files."""


def config_name(number: int) -> str:
    """The name in configuration files, for example `TYPE_STRING`."""
    return _NAMES[number] if 0 <= number < len(_NAMES) else _NAMES[0]


def v2_name(number: int) -> str:
    """The V2 name of a datatype in a configuration, for example `BYTES`; `<invalid>` for none."""
    name = config_name(number)
    if name == "TYPE_INVALID":
        return "<invalid>"
    return "BYTES" if name == "TYPE_STRING" else name.removeprefix("TYPE_")


def config_number(v2: str) -> int:
    """The number in configuration files of a V2 name; 0 for a name that is none."""
    name = "TYPE_STRING" if v2 == "BYTES" else f"TYPE_{v2}"
    return _NAMES.index(name) if name in _BYTES else 0


def element_bytes(number: int) -> int | None:
    """Bytes of one element; None for strings, whose elements differ, and for what is no datatype."""
    return _BYTES.get(config_name(number))
