"""A flag that was given: on the command line, in the environment or in a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from alipes.config.flags import Flag, Value, find
from alipes.config.flags.own import OWN, PORT_OFFSETS
from alipes.config.values import parse_own_value
from alipes.errors import ConfigError

__all__ = ["FlagText", "spell_out"]

_OWN: Final = frozenset(flag.name for flag in OWN if not flag.option)


@dataclass(frozen=True, slots=True)
class FlagText:
    """A flag and the text that was given for it.

    Attributes:
        flag: The row of the flag.
        text: What was given, one of several texts where a flag may be repeated.
        name: What messages call it: `--http-port`, the variable, or the key with its file and line.
    """

    flag: Flag
    text: str
    name: str

    def read(self) -> Value:
        """The value, as `alipes serve` reads it.

        Raises:
            ConfigError: If the text is no value of the flag.
        """
        flag = self.flag
        return parse_own_value(self.name, flag.kind, self.text, choices=flag.choices, low=flag.low, high=flag.high)


def spell_out(texts: Iterable[FlagText]) -> list[FlagText]:
    """What one source gives, with the flags of `alipes serve` alone replaced by those that they stand for.

    These come first: `--port 9000 --grpc-port 7` means port 7 for gRPC, in any order.

    Raises:
        ConfigError: If one of them has no value of its kind.
    """
    listed = list(texts)
    longer = [found for one in listed if one.flag.name in _OWN for found in _longer(one)]
    return longer + [one for one in listed if one.flag.name not in _OWN]


def _longer(short: FlagText) -> Iterator[FlagText]:
    if short.flag.name == "port":
        _check_port(short)
    value = short.read()
    match short.flag.name:
        case "host":
            _check_host(short)
            yield from (_as(short, f"{endpoint}-address", short.text) for endpoint in PORT_OFFSETS)
        case "port":
            first = int(short.text)
            for endpoint, offset in PORT_OFFSETS.items():
                yield _as(short, f"{endpoint}-port", str(first + offset if first else 0))
        case "verbose":
            yield _as(short, "log-verbose", short.text)
        case "quiet" if value:
            yield _as(short, "log-info", "false")


def _as(short: FlagText, name: str, text: str) -> FlagText:
    flag = find(name)
    assert flag is not None, name
    return replace(short, flag=flag, text=text)


def _check_port(short: FlagText) -> None:
    """Refuse an address in the place of a port."""
    host, colon, port = short.text.rpartition("://")[2].rstrip("/").rpartition(":")
    if colon and "/" not in host and port.isascii() and port.isdecimal():
        raise ConfigError(
            f"say --host {host.strip('[]') or '0.0.0.0'} --port {port}: {short.name} takes a number alone, "
            f"not '{short.text}'",
            key=short.name,
        )


def _check_host(short: FlagText) -> None:
    """Refuse what is more than a host: three endpoints cannot share a socket, and a port has a flag of its own."""
    text = short.text
    if text.startswith("unix:"):
        raise ConfigError(
            f"say --http-address {text} for HTTP alone: {short.name} is the address of three endpoints, which cannot "
            "share a Unix socket",
            key=short.name,
        )
    host = text.partition("://")[2] or text
    name, colon, port = host.rstrip("/").rpartition(":")
    if colon and ":" not in name and port.isdecimal():
        raise ConfigError(
            f"say --host {name or '0.0.0.0'} --port {port}: {short.name} takes a name or an address alone, "
            f"not '{text}'",
            key=short.name,
        )
    if host != text and re.fullmatch(r"[^/\s:]+/?", host):
        raise ConfigError(
            f"say --host {host.rstrip('/')}: {short.name} takes a name or an address alone, not '{text}'",
            key=short.name,
        )
    if host != text or not text or "/" in text:
        raise ConfigError(f"{short.name} takes a name or an address, such as 127.0.0.1, not '{text}'", key=short.name)
