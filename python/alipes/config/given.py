"""A flag that was given: on the command line, in the environment or in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from alipes.config.flags import Flag, Value, find
from alipes.config.flags.own import OWN, PORT_OFFSETS
from alipes.config.values import parse_own_value
from alipes.errors import ConfigError

__all__ = ["Given", "spell_out"]

_OWN: Final = frozenset(flag.name for flag in OWN)


@dataclass(frozen=True, slots=True)
class Given:
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


def spell_out(given: Iterable[Given]) -> list[Given]:
    """What one source gives, with the flags of `alipes serve` alone replaced by those that they stand for.

    These come first: `--port 9000 --grpc-port 7` means port 7 for gRPC, in any order.

    Raises:
        ConfigError: If one of them has no value of its kind.
    """
    listed = list(given)
    short = [longer for one in listed if one.flag.name in _OWN for longer in _longer(one)]
    return short + [one for one in listed if one.flag.name not in _OWN]


def _longer(given: Given) -> Iterator[Given]:
    value = given.read()
    match given.flag.name:
        case "host":
            _check_host(given)
            yield from (_as(given, f"{endpoint}-address", given.text) for endpoint in PORT_OFFSETS)
        case "port":
            first = int(given.text)
            for endpoint, offset in PORT_OFFSETS.items():
                yield _as(given, f"{endpoint}-port", str(first + offset if first else 0))
        case "verbose":
            yield _as(given, "log-verbose", given.text)
        case "quiet" if value:
            yield _as(given, "log-info", "false")


def _as(given: Given, name: str, text: str) -> Given:
    flag = find(name)
    assert flag is not None, name
    return replace(given, flag=flag, text=text)


def _check_host(given: Given) -> None:
    """Refuse what is more than a host: three endpoints cannot share a socket, and a port has a flag of its own."""
    text = given.text
    if text.startswith("unix:"):
        raise ConfigError(
            f"say --http-address {text} for HTTP alone: {given.name} is the address of three endpoints, which cannot "
            "share a Unix socket",
            key=given.name,
        )
    host = text.partition("://")[2] or text
    name, colon, port = host.rstrip("/").rpartition(":")
    if colon and ":" not in name and port.isdecimal():
        raise ConfigError(
            f"say --host {name or '0.0.0.0'} --port {port}: {given.name} takes a name or an address alone, "
            f"not '{text}'",
            key=given.name,
        )
    if host != text or not text or "/" in text:
        raise ConfigError(f"{given.name} takes a name or an address, such as 127.0.0.1, not '{text}'", key=given.name)
