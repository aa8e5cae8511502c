"""Texts of flags, environment variables and configuration files, read as values."""

from __future__ import annotations

import re
from typing import Final

from alipes.config.flags import Kind, Value
from alipes.config.nearest import nearest
from alipes.errors import ConfigError

__all__ = ["BOOLS", "parse_own_value", "parse_value", "read_int", "read_seconds"]

BOOLS: Final = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
"""The words for yes and no, whatever their case."""

_MAX_INT: Final = 2**31 - 1
_MOST_DIGITS: Final = 19
"""Digits of the largest 64-bit number; a longer text is not even converted."""


class _Unfit(Exception):
    """The text is no such value; what was expected."""


def parse_value(
    name: str, kind: Kind, text: str, *, choices: tuple[str, ...] = (), low: int = 0, high: int = _MAX_INT
) -> Value:
    """Read one value, and refuse another text in the words that both forms of the command line share.

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
    try:
        return _read(kind, text, choices, low, high)
    except _Unfit as unfit:
        raise ConfigError(f"Bad option: \"{name}\".\nexpected {unfit}, got '{text}'", key=name) from None


def parse_own_value(
    name: str, kind: Kind, text: str, *, choices: tuple[str, ...] = (), low: int = 0, high: int = _MAX_INT
) -> Value:
    """Read one value for `alipes serve`: a choice may be in any case, and a refusal names the likeliest mend.

    Args:
        name: What to call it in a message: `--http-port`, or the key of a file with its line.
        kind: How to read it; a `list` gives the one element as text.
        text: What was given.
        choices: The words that a `choice` takes.
        low: Smallest integer allowed.
        high: Largest integer allowed.

    Raises:
        ConfigError: If the text is no such value.
    """
    known = {choice.lower(): choice for choice in choices}
    try:
        return _read(kind, known.get(text.lower(), text) if kind == "choice" else text, choices, low, high)
    except _Unfit as unfit:
        close = nearest(text.lower(), known)
        guess = f"; did you mean {known[close]}?" if close else ""
        expected = str(unfit).replace("an integer", "a number")
        raise ConfigError(f"{name} takes {expected}, not '{text}'{guess}", key=name) from None


def _read(kind: Kind, text: str, choices: tuple[str, ...], low: int, high: int) -> Value:
    """The value; raises `_Unfit` where the text is none."""
    if kind == "bool":
        if text.lower() not in BOOLS:
            raise _Unfit("true or false")
        return BOOLS[text.lower()]
    if kind == "level" and text.lower() in ("true", "false"):
        return 1 if text.lower() == "true" else 0
    if kind in ("int", "level"):
        number = read_int(text, low, high)
        if number is None:
            raise _Unfit(f"an integer from {low} to {high}")
        return number
    if kind == "seconds":
        seconds = read_seconds(text)
        if seconds is None:
            raise _Unfit("seconds, such as 30 or 0.5")
        return seconds
    if kind == "choice" and text not in choices:
        raise _Unfit(f"one of {', '.join(choices)}")
    return text


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
