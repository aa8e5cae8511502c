"""Reads ranges of addresses: `--trusted-proxies`."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network

from alipes.errors import ConfigError

__all__ = ["read_networks"]


def read_networks(flag: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Take the values of a flag apart.

    Args:
        flag: The flag without its dashes.
        texts: The values, each an address or a network such as `10.0.0.0/8`, or several between commas.

    Returns:
        Each network once, in its usual form.

    Raises:
        ConfigError: If one is neither.
    """
    return tuple(dict.fromkeys(_network(flag, word.strip()) for text in texts for word in text.split(",")))


def _network(flag: str, word: str) -> str:
    try:
        return str(ip_network(word))
    except ValueError as error:
        raise ConfigError(
            f'Bad option: "--{flag}".\nexpected an address or a network such as 10.0.0.0/8: {error}', key=flag
        ) from None
