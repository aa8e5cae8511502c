"""What `tritonserver --help` shows, and what it shows with every mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from alipes.config.flags import FLAGS, Flag, Value

__all__ = ["triton_usage"]

_NO_DEFAULTS: Final[Mapping[str, Value]] = {}
_METAVARS: Final = {
    "bool": "true|false",
    "level": "integer",
    "int": "integer",
    "seconds": "seconds",
    "str": "text",
    "list": "text",
}


def triton_usage(first: str, defaults: Mapping[str, Value] = _NO_DEFAULTS) -> str:
    """Every flag under its heading, with default and status.

    Args:
        first: What stands behind `Usage: `.
        defaults: The defaults that `tritonserver` has for itself, by the names of their flags.
    """
    lines = [f"Usage: {first}"]
    group = ""
    for flag in FLAGS:
        if flag.group != group:
            group = flag.group
            lines += ["", f"{group}:"]
        default = defaults.get(flag.name, flag.default)
        lines += [f"  --{flag.name} <{_metavar(flag)}>", f"        {_describe(flag, default)}"]
    return "\n".join(lines) + "\n"


def _describe(flag: Flag, default: Value) -> str:
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
