"""The key that a started server asks for, as its own command line says it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from alipes.config.api_keys import read_key_file
from alipes.errors import ConfigError

__all__ = ["key_among"]


def key_among(flags: Sequence[str]) -> str | None:
    """A key that flags name, or the first of their file; None where they name none.

    Each client finds a key of the environment by itself.
    """
    values = dict(_pairs(flags))
    if key := values.get("api-key"):
        return key
    try:
        return read_key_file(values["api-key-file"])[0] if "api-key-file" in values else None
    except ConfigError:  # the server says so itself
        return None


def _pairs(flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    for index, word in enumerate(flags):
        name, equals, value = word.partition("=")
        if name in {"--api-key", "--api-key-file"}:
            following = flags[index + 1] if index + 1 < len(flags) else ""
            yield name.removeprefix("--"), value if equals else following
