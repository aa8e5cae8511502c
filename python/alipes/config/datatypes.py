"""Element types: the names of configuration files beside the names of the V2 protocol."""

from __future__ import annotations

from functools import cache
from typing import Final

from alipes import _core

__all__ = ["INVALID", "config_name", "config_number", "element_bytes", "numpy_name", "v2_name", "v2_names"]

INVALID: Final = 0
"""The number of an absent datatype."""

_INVALID_NAMES: Final = ("TYPE_INVALID", "<invalid>")


@cache
def _rows() -> dict[int, _core.DatatypeRow]:
    """The table of datatypes by number in configuration files."""
    return dict(enumerate(_core.datatypes(), start=1))


def v2_names() -> list[str]:
    """The V2 names of all datatypes."""
    return [row.name for row in _rows().values()]


def config_name(number: int) -> str:
    """The name in configuration files, for example `TYPE_STRING`; `TYPE_INVALID` for any other number."""
    row = _rows().get(number)
    return _INVALID_NAMES[0] if row is None else row.config_name


def v2_name(number: int) -> str:
    """The V2 name of a datatype in a configuration, for example `BYTES`; `<invalid>` for any other number."""
    row = _rows().get(number)
    return _INVALID_NAMES[1] if row is None else row.name


def config_number(v2: str) -> int:
    """The number in configuration files of a V2 name; `INVALID` for any other name."""
    return next((number for number, row in _rows().items() if row.name == v2), INVALID)


def element_bytes(number: int) -> int | None:
    """Bytes of one element; None for strings, whose elements differ, and for any other number."""
    row = _rows().get(number)
    return None if row is None else row.size


def numpy_name(number: int) -> str | None:
    """The numpy type of a datatype, for example `float32`; None where numpy has none."""
    row = _rows().get(number)
    return None if row is None else row.numpy_name
