"""Flags of the server as keywords of Python: `http_port=9000`, `model_control_mode="explicit"`, `load_model=["a"]`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from alipes.errors import ServeError

if TYPE_CHECKING:
    from alipes.config.flags import Flag

__all__ = ["FlagValue", "keyword_words"]

FlagValue = bool | int | float | str | os.PathLike[str] | Sequence[str] | None
"""What a keyword takes; `None` leaves the flag out, a list is for flags that may be given several times."""

_HIGHEST_PORT: Final = 65535
_ENDPOINTS: Final = ("http", "grpc", "metrics")
_OTHERS: Final = ("gpus", "host", "image", "log_file", "name", "port", "runtime", "server_args", "timeout", "wait")
"""Keywords that are no flags of the server."""

# What only some calls take, and what the others do about it.
_ELSEWHERE: Final = {
    "timeout": "in a block write `instance.wait(timeout=...)`",
    "wait": "`launch` waits until the server is ready, for as long as timeout= says",
}

_EXPECTED: Final[Mapping[str, str]] = {
    "bool": "True or False",
    "int": "an integer from {low} to {high}",
    "level": "an integer from {low} to {high}, True or False",
    "seconds": "seconds, such as 30 or 0.5",
    "choice": "one of {choices}",
    "str": "a text",
    "list": "a text, or a list of texts",
}


def keyword_words(keywords: Mapping[str, object]) -> list[str]:
    """The words of a command line that keywords stand for.

    `host` stands for the addresses of all endpoints. `port` is the port of HTTP; gRPC and metrics have the next two, or
    any ports where it is 0.

    Raises:
        ServeError: If a keyword is no flag, or its value none of the flag's.
    """
    if not keywords:
        return []
    present = {name: value for name, value in keywords.items() if value is not None}
    return [word for name, value in _expanded(present).items() for word in _words(name, value)]


def _expanded(keywords: dict[str, object]) -> dict[str, object]:
    """The keywords with `host` and `port` spelled out; what names an endpoint counts more."""
    host, port = keywords.pop("host", None), keywords.pop("port", None)
    if port is not None:
        if type(port) is not int or not 0 <= port <= _HIGHEST_PORT:
            raise ServeError(f"port={port!r} cannot be used: it takes an integer from 0 to 65535")
        keywords = {f"{name}_port": port and port + index for index, name in enumerate(_ENDPOINTS)} | keywords
    if host is not None:
        keywords = {f"{name}_address": host for name in _ENDPOINTS} | keywords
    return keywords


def _words(name: str, value: object) -> list[str]:
    from alipes.config.flags import find  # on use: most callers give no flags

    flag = find(name.replace("_", "-"))
    if flag is None:
        raise ServeError(_unknown(name))
    several = flag.kind == "list" and isinstance(value, list | tuple)
    texts = [_text(name, flag, one) for one in (value if several else [value])]  # type: ignore[attr-defined]
    return [f"--{flag.name}={text}" for text in texts]


def _unknown(name: str) -> str:
    from alipes.config.flags import FLAGS
    from alipes.config.nearest import nearest
    from alipes.synonyms import synonym

    if name in _ELSEWHERE:
        return f"{name}= is no argument of this call: {_ELSEWHERE[name]}"
    if row := synonym("alipes.serve", name):
        return f"{name}= is no flag of the server: {row.hint}"
    close = nearest(name.lower(), [*(flag.name.replace("-", "_") for flag in FLAGS), *_OTHERS])
    mend = f"did you mean {close}=?" if close else "`alipes serve --help-all` lists the flags, here with _ for -"
    return f"{name}= is no flag of the server: {mend}"


def _text(name: str, flag: Flag, value: object) -> str:
    """The value as the server reads it.

    Raises:
        ServeError: If it is none of the flag's.
    """
    from alipes.config.values import parse_value
    from alipes.errors import ConfigError

    expected = _EXPECTED[flag.kind].format(low=flag.low, high=flag.high, choices=", ".join(map(repr, flag.choices)))
    if _fits(flag, value):
        text = _spelled(flag, value)
        try:
            parse_value(f"--{flag.name}", flag.kind, text, choices=flag.choices, low=flag.low, high=flag.high)
        except ConfigError:
            pass
        else:
            return text
    raise ServeError(f"{name}={value!r} cannot be used: it takes {expected}")


def _spelled(flag: Flag, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    return next((choice for choice in flag.choices if choice.lower() == text.lower()), text)


def _fits(flag: Flag, value: object) -> bool:
    if isinstance(value, bool):
        return flag.kind in ("bool", "level")
    return isinstance(value, int | float | str) or (flag.kind in ("str", "list") and isinstance(value, os.PathLike))
