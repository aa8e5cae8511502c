"""The syntax of the command line: `--flag=value`, `--flag value`, `--switch`, and positional repositories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from alipes.config.flags import FLAGS, Flag, Value, find
from alipes.config.nearest import nearest
from alipes.config.values import BOOLS
from alipes.errors import ConfigError

__all__ = ["split_arguments", "usage"]

_SWITCHES: Final = ("bool", "level")
_NO_DEFAULTS: Final[Mapping[str, Value]] = {}
_METAVARS: Final = {
    "bool": "true|false",
    "level": "integer",
    "int": "integer",
    "seconds": "seconds",
    "str": "text",
    "list": "text",
}


def split_arguments(argv: Sequence[str]) -> tuple[list[tuple[Flag, str]], list[str]]:
    """Split a command line into flags with their texts, and positional arguments.

    Args:
        argv: The arguments after the command's name.

    Returns:
        Each flag given with its text, in order, and the positional arguments, in order.

    Raises:
        ConfigError: If a flag is unknown or lacks its value.
    """
    pairs: list[tuple[Flag, str]] = []
    positional: list[str] = []
    rest = list(reversed(argv))
    while rest:
        word = rest.pop()
        if word == "--":
            positional += reversed(rest)
            break
        if not word.startswith("-") or word == "-":
            positional.append(word)
            continue
        name, equals, text = word.partition("=")
        flag = _known(name)
        pairs.append((flag, text if equals else _following(flag, rest)))
    return pairs, positional


def _known(name: str) -> Flag:
    flag = find(name.removeprefix("--")) if name.startswith("--") else None
    if flag is not None:
        return flag
    close = nearest(name.lstrip("-").replace("_", "-"), [row.name for row in FLAGS])
    hint = f"did you mean --{close}?" if close else None
    raise ConfigError(f'Bad option: "{name}".\nunrecognized option{f"; {hint}" if hint else ""}', key=name, hint=hint)


def _following(flag: Flag, rest: list[str]) -> str:
    """The text of a flag given without `=`: the next word; a switch may stand alone."""
    if flag.kind in _SWITCHES:
        takes = rest and (rest[-1].lower() in BOOLS or (flag.kind == "level" and rest[-1].isdigit()))
        return rest.pop() if takes else "true"
    if not rest:
        raise ConfigError(f'Bad option: "--{flag.name}".\noption requires an argument', key=flag.name)
    return rest.pop()


def usage(first: str, defaults: Mapping[str, Value] = _NO_DEFAULTS) -> str:
    """The help text of a server: every flag under its heading, with default and status.

    Args:
        first: What stands behind `Usage: `.
        defaults: The defaults that this form of the command line has for itself, by the names of their flags.
    """
    lines = [f"Usage: {first}"]
    group = ""
    for flag in FLAGS:
        if flag.group != group:
            group = flag.group
            lines += ["", f"{group}:"]
        default = defaults.get(flag.name, flag.default)
        lines += [f"  --{flag.name} <{_metavar(flag)}>", f"        {describe(flag, default)}"]
    return "\n".join(lines) + "\n"


def describe(flag: Flag, default: Value) -> str:
    """What a flag does and does not, in one line."""
    text = flag.help
    if default not in (None, "", ()):
        text += f" Default: {_word(default)}."
    if flag.ignored:
        text += f" Ignored with a notice: {flag.ignored}."
    if flag.refused:
        text += f" Refused: {flag.refused}."
    return text


def _metavar(flag: Flag) -> str:
    if flag.kind == "choice":
        return "|".join(flag.choices)
    return _METAVARS[flag.kind]


def _word(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
