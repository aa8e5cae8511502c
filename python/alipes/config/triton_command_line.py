"""Triton's command line: how `tritonserver` takes its options apart, and in which words it refuses them.

Source: Triton's `TritonParser`, and the `getopt_long` of the C library, which it calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from alipes.config.flags import FLAGS, Flag, Kind, Value
from alipes.config.flags.flag import MAX_BYTES, MAX_INT
from alipes.config.values import BOOLS, parse_value
from alipes.errors import ConfigError

__all__ = ["PROGRAM", "parse_triton_value", "split_triton_arguments"]

PROGRAM: Final = "tritonserver"

_HELP: Final = "help"
_OLDER: Final = {"model-store": "model-repository"}
"""Older names of flags, which mean more to `alipes serve`."""

_WITHOUT_VALUE: Final = ("disable-auto-complete-config",)
_BOUNDED: Final = (
    "--exit-timeout-secs",
    "--buffer-manager-thread-count",
    "--model-load-thread-count",
    "--model-load-retry-count",
    "--log-verbose",
    "--trace-rate",
    "--trace-count",
    "--trace-log-frequency",
)
"""Numbers that become the nearest one that makes sense, rather than being refused."""

_ANY_CASE: Final = ("--model-control-mode", "--rate-limit", "--grpc-infer-response-compression-level")
_CALLED: Final = {"--grpc-infer-response-compression-level": "--grpc_infer_response_compression_level"}
"""A flag that a message spells otherwise."""

_LEADING_NUMBER: Final = re.compile(r"\s*([+-]?)0*([0-9]+)", re.ASCII)
_MOST_DIGITS: Final = 19
"""Digits of the largest 64-bit number; a longer text is not even converted."""


def split_triton_arguments(argv: Sequence[str]) -> tuple[list[tuple[Flag, str]], list[str]]:
    """Split a command line into options with their texts; there is nothing else on it.

    An option takes the word behind it, whatever that is, unless it has `=`; a part of its name is enough where no other
    begins so.

    Args:
        argv: The arguments after the command's name.

    Returns:
        Each option given with its text, in order, and no positional arguments.

    Raises:
        ConfigError: If an option is unknown, ambiguous, lacks its value or has one too many, help is asked for (the
            message is empty then), or something else stands there.
    """
    pairs: list[tuple[Flag, str]] = []
    unexpected: list[str] = []
    rest = list(reversed(argv))
    while rest:
        word = rest.pop()
        if word == "--":
            unexpected += reversed(rest)
            break
        if not word.startswith("-") or word == "-":
            unexpected.append(word)
            continue
        pairs.append(_option(word, rest))
    if unexpected:
        raise ConfigError(f"Unexpected argument: {unexpected[0]}", key=unexpected[0])
    return pairs, []


def parse_triton_value(
    name: str, kind: Kind, text: str, *, choices: tuple[str, ...] = (), low: int = 0, high: int = MAX_INT
) -> Value:
    """Read one value as `tritonserver` does: a number may have something behind it, a choice may be in capitals.

    Args:
        name: The option, with its dashes.
        kind: How to read it; a `list` gives the one element as text.
        text: What was given.
        choices: The words that a `choice` takes.
        low: Smallest integer allowed.
        high: Largest integer allowed.

    Raises:
        ConfigError: If the text is no such value.
    """
    if kind == "bool":
        if text.lower() not in BOOLS:
            raise _bad(name, f"invalid value for bool option: {text}")
        return BOOLS[text.lower()]
    if kind == "level" and text.lower() in ("true", "false"):
        return 1 if text.lower() == "true" else 0
    if kind in ("int", "level"):
        number = _number(name, text, MAX_BYTES if high > MAX_INT else MAX_INT)
        number = min(max(low, number), high) if name in _BOUNDED else number
        return parse_value(name, kind, str(number), low=low, high=high)
    if kind == "choice":
        word = text.lower() if name in _ANY_CASE else text
        if word not in choices:
            raise _bad(name, f"invalid argument for {_CALLED.get(name, name)}")
        return word
    return parse_value(name, kind, text, choices=choices, low=low, high=high)


def _option(word: str, rest: list[str]) -> tuple[Flag, str]:
    """One option, with its value taken from the words behind it."""
    if not word.startswith("--"):
        raise _refused(f"invalid option -- '{word[1]}'", word)
    name, equals, text = word.removeprefix("--").partition("=")
    found = _find(name)
    if found == _HELP:
        raise ConfigError("", key=_HELP)
    flag = next(flag for flag in FLAGS if flag.name == _OLDER.get(found, found))
    if found in _WITHOUT_VALUE:
        if equals:
            raise _refused(f"option '--{found}' doesn't allow an argument", found)
        return flag, "true"
    if not equals and not rest:
        raise _refused(f"option '--{found}' requires an argument", found)
    return flag, text if equals else rest.pop()


def _find(name: str) -> str:
    """The name that is meant: this one, or the only one that begins so."""
    names = [_HELP, *(flag.name for flag in FLAGS)]
    found = [one for one in names if one.startswith(name)]
    if name in found:
        return name
    if not found:
        raise _refused(f"unrecognized option '--{name}'", name)
    if len(found) > 1:
        possible = " ".join(f"'--{one}'" for one in found)
        raise _refused(f"option '--{name}' is ambiguous; possibilities: {possible}", name)
    return found[0]


def _number(name: str, text: str, high: int) -> int:
    """The number that a text begins with."""
    match = _LEADING_NUMBER.match(text)
    if match is None:
        raise _bad(name, f"Invalid option value. Got {text}")
    sign, digits = match.groups()
    number = int(sign + digits) if len(digits) <= _MOST_DIGITS else high + 1
    if not -high - 1 <= number <= high:
        raise _bad(name, f"Provided option value is out of bound. Got {text}")
    return number


def _bad(name: str, what: str) -> ConfigError:
    return ConfigError(f'Bad option: "{name}".\n{what}', key=name)


def _refused(what: str, name: str) -> ConfigError:
    return ConfigError(f"{PROGRAM}: {what}", key=name)
