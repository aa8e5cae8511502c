"""Values of options, read from text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from alipes.compat.perf_analyzer.failures import OptionFailed
from alipes.compat.perf_analyzer.parser import Argument

__all__ = ["choice", "existing_file", "integer", "named_parameter", "named_shape", "number", "parts", "span"]

Parameter: TypeAlias = bool | int | float | str

_RANGE_PARTS: Final = 3
_TRUE: Final = ("true", "1")
_FALSE: Final = ("false", "0")


def integer(argument: Argument) -> int:
    """A whole number."""
    try:
        return int(argument.value)
    except ValueError as error:
        raise _invalid(argument) from error


def number(argument: Argument) -> float:
    """A number that is finite."""
    try:
        value = float(argument.value)
    except ValueError as error:
        raise _invalid(argument) from error
    if not math.isfinite(value):
        raise _invalid(argument)
    return value


def span(argument: Argument) -> list[float]:
    """The one to three numbers of `start:end:step`."""
    texts = argument.value.split(":")
    if len(texts) > _RANGE_PARTS:
        raise OptionFailed(f"Failed to parse {argument.written}. The value does not match <start:end:step>.")
    try:
        values = [float(text) for text in texts]
    except ValueError as error:
        raise _invalid(argument) from error
    if not all(map(math.isfinite, values)):
        raise _invalid(argument)
    return values


def parts(argument: Argument) -> list[int]:
    """Whole numbers with colons between."""
    try:
        return [int(text) for text in argument.value.split(":")]
    except ValueError as error:
        raise _invalid(argument) from error


def choice(argument: Argument, choices: Sequence[str], wanted: str) -> str:
    """One of some words; `wanted` names them."""
    if argument.value not in choices:
        raise OptionFailed(
            f"Failed to parse {argument.written}. Unsupported type provided: '{argument.value}'. {wanted}"
        )
    return argument.value


def existing_file(argument: Argument, end: str = ".") -> Path:
    """A file that is there."""
    path = Path(argument.value)
    if not path.is_file():
        raise OptionFailed(f"Failed to parse {argument.written}. The value must be a valid file path{end}")
    return path


def named_shape(argument: Argument) -> tuple[str, tuple[int, ...]]:
    """An input's name, a colon, sizes with commas between."""
    name, colon, text = argument.value.rpartition(":")
    if not colon:
        raise OptionFailed(f"Failed to parse {argument.written}. There must be a colon after input name.")
    try:
        sizes = tuple(int(size) for size in text.split(","))
    except ValueError as error:
        raise _invalid(argument) from error
    if min(sizes) <= 0:
        raise OptionFailed(f"Failed to parse {argument.written}. The dimensions of input tensor must be > 0.")
    return name, sizes


def named_parameter(argument: Argument) -> tuple[str, Parameter]:
    """A parameter's name, value and type with colons between."""
    name, _, rest = argument.value.partition(":")
    text, colon, kind = rest.rpartition(":")
    if not name or not colon:
        raise OptionFailed(f"Failed to parse {argument.written}. The value does not match <name:value:type>.")
    readers: Mapping[str, type[int | float | str]] = {"int": int, "uint": int, "double": float, "string": str}
    if kind == "bool" and text.lower() in (*_TRUE, *_FALSE):
        return name, text.lower() in _TRUE
    try:
        return name, readers[kind](text)
    except (KeyError, ValueError) as error:
        raise OptionFailed(
            f"Failed to parse {argument.written}. '{text}' is no {kind}: the types are bool, int, uint, double and "
            "string."
        ) from error


def _invalid(argument: Argument) -> OptionFailed:
    return OptionFailed(f"Failed to parse {argument.written}. Invalid value provided: {argument.value}")
