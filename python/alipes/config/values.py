"""Texts of flags and environment variables, read as values."""

from __future__ import annotations

import re
from typing import Final

from alipes.config.flags import Kind, Value
from alipes.errors import ConfigError

__all__ = ["BOOLS", "parse_value", "read_int", "read_seconds"]

BOOLS: Final = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
"""The words for yes and no, whatever their case."""

_MAX_INT: Final = 2**31 - 1
_MOST_DIGITS: Final = 19
"""Digits of the largest 64-bit number; a longer text is not even converted."""


def parse_value(
    name: str, kind: Kind, text: str, *, choices: tuple[str, ...] = (), low: int = 0, high: int = _MAX_INT
) -> Value:
    """Read one value.

    Args:
        name: What to call it in a message, for example `--http-port`.
        kind: How to read it; a `list` gives the one element as text.
        text: What was given.
        choices: The words that a `choice` takes.
        low: Smallest integer allowed.
        high: Largest integer allowed.

    Raises:
        ConfigError: If the text is no such value.
    """
    if kind == "bool":
        return _bool(name, text)
    if kind == "level" and text.lower() in ("true", "false"):
        return 1 if text.lower() == "true" else 0
    if kind in ("int", "level"):
        return _int(name, text, low, high)
    if kind == "seconds":
        return _seconds(name, text)
    if kind == "choice" and text not in choices:
        raise _bad(name, f"one of {', '.join(choices)}", text)
    return text


def _bool(name: str, text: str) -> bool:
    try:
        return BOOLS[text.lower()]
    except KeyError:
        raise _bad(name, "true or false", text) from None


def read_int(text: str, low: int, high: int) -> int | None:
    """An integer between two others, both included; None for any other text."""
    # int() alone would take "1_000" and digits of other scripts.
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return int(text) if is_number and low <= int(text) <= high else None


def read_seconds(text: str) -> float | None:
    """A time that is not negative, such as `30` or `0.5`; None for any other text."""
    is_number = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) is not None
    return float(text) if is_number else None


def _int(name: str, text: str, low: int, high: int) -> int:
    value = read_int(text, low, high)
    if value is None:
        raise _bad(name, f"an integer from {low} to {high}", text)
    return value


def _seconds(name: str, text: str) -> float:
    value = read_seconds(text)
    if value is None:
        raise _bad(name, "seconds, such as 30 or 0.5", text)
    return value


def _bad(name: str, expected: str, text: str) -> ConfigError:
    return ConfigError(f"Bad option: \"{name}\".\nexpected {expected}, got '{text}'", key=name)
