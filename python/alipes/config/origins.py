"""Reads the origins of web pages, and the names of the server: `--cors-origins`, `--allowed-hosts`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from alipes.errors import ConfigError

__all__ = ["read_hosts", "read_origins"]

_ANY: Final = "*"

# Source: RFC 6454, section 6.2: scheme, host, and the port where it is not the scheme's own.
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_HOST: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_USUAL: Final = {"http": ":80", "https": ":443"}


def read_origins(flag: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Take the values of a flag apart.

    Args:
        flag: The flag without its dashes.
        texts: The values, each `*`, an origin such as `https://app.example.org`, or several between commas.

    Returns:
        Each origin once, as browsers write it; `*` alone where it is among them.

    Raises:
        ConfigError: If one is no origin. `null` is none: every page in a sandbox has it.
    """
    origins = tuple(dict.fromkeys(_origin(flag, word.strip()) for text in texts for word in text.split(",")))
    return (_ANY,) if _ANY in origins else origins


def read_hosts(flag: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Take the values of a flag apart.

    Args:
        flag: The flag without its dashes.
        texts: The values, each `*`, a name such as `models.example.org`, or several between commas.

    Returns:
        Each name once, in small letters; `*` alone where it is among them.

    Raises:
        ConfigError: If one is no name of a host, such as one with a port.
    """
    hosts = tuple(dict.fromkeys(_host(flag, word.strip()) for text in texts for word in text.split(",")))
    return (_ANY,) if _ANY in hosts else hosts


def _host(flag: str, word: str) -> str:
    host = word.lower().rstrip(".")
    if host != _ANY and not _HOST.fullmatch(host):
        raise ConfigError(
            f'Bad option: "--{flag}".\nexpected * or a name such as models.example.org, without scheme and port, '
            f"got '{word}'",
            key=flag,
        )
    return host


def _origin(flag: str, word: str) -> str:
    origin = word.lower()
    if origin != _ANY and not _ORIGIN.fullmatch(origin):
        meant = origin.rstrip("/")
        hint = f"; did you mean {meant}?" if _ORIGIN.fullmatch(meant) else ""
        raise ConfigError(
            f"Bad option: \"--{flag}\".\nexpected * or an origin such as https://app.example.org, got '{word}'{hint}",
            key=flag,
        )
    return origin.removesuffix(_USUAL.get(origin.partition(":")[0], "\0"))
