"""Reads the keys that clients must show: `--api-key`, `--api-key-file` and `--api-key-open`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from alipes.config.listener_options import ApiKeyOptions
from alipes.config.nearest import nearest
from alipes.config.restrictions import GROUPS
from alipes.errors import ConfigError

__all__ = ["OPEN_GROUPS", "read_api_keys", "read_key_file"]

OPEN_GROUPS: Final = (*GROUPS, "metrics")
"""The groups of requests that may be open beside a key."""

_OPEN_BY_DEFAULT: Final = ("health",)  # probes of orchestrators show no key
_NO_GROUP: Final = "none"

# What the header `Authorization` can carry without quoting. Source: RFC 6750, section 2.1, and a little more.
_KEY: Final = re.compile(r"[!-~]{1,4096}")

# A file of this size has some thousand keys; what is larger is another file.
_MAX_FILE_BYTES: Final = 1 << 20


def read_api_keys(keys: Sequence[str], file: str, open_groups: Sequence[str]) -> ApiKeyOptions | None:
    """The keys of a server; None where it asks for none.

    Args:
        keys: The values of `--api-key`.
        file: The value of `--api-key-file`; empty where there is none.
        open_groups: The values of `--api-key-open`.

    Raises:
        ConfigError: If a key cannot be sent in a header, the file cannot be read or has no key, or a group is unknown
            or opens what is not closed. No message has a key in it.
    """
    if not keys and not file:
        if open_groups:
            raise _bad("api-key-open", "it opens groups beside a key, and there is none: give --api-key, too")
        return None
    for key in keys:
        if not _KEY.fullmatch(key):
            raise _bad("api-key", f"a key of {len(key)} characters is empty, too long, or has white space in it")
    options = ApiKeyOptions(keys=tuple(keys), file=file, open_groups=_groups(open_groups))
    if file:
        read_key_file(file)
    return options


def read_key_file(file: str) -> tuple[str, ...]:
    """The keys of a file: one on each line, without empty lines and those that begin with `#`.

    Raises:
        ConfigError: If it cannot be read, has no key, or has a line that is none.
    """
    keys = []
    for number, line in enumerate(_text(file).splitlines(), 1):
        key = line.strip()
        if not key or key.startswith("#"):
            continue
        if not _KEY.fullmatch(key):
            raise _bad("api-key-file", f"line {number} of {file} is no key: it is too long, or has white space in it")
        keys.append(key)
    if not keys:
        raise _bad("api-key-file", f"{file} has no key: write one on each line")
    return tuple(dict.fromkeys(keys))


def _text(file: str) -> str:
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _bad("api-key-file", f"{file} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_FILE_BYTES:
        raise _bad("api-key-file", f"{file} is larger than {_MAX_FILE_BYTES} bytes, so it is no file of keys")
    return content.decode("utf-8", errors="replace")


def _groups(texts: Sequence[str]) -> tuple[str, ...]:
    if not texts:
        return _OPEN_BY_DEFAULT
    names = [name.strip() for text in texts for name in text.split(",")]
    if names == [_NO_GROUP]:
        return ()
    for name in names:
        if name not in OPEN_GROUPS:
            close = nearest(name, OPEN_GROUPS)
            hint = f"; did you mean '{close}'?" if close else f"; the groups are {', '.join(OPEN_GROUPS)}"
            raise _bad("api-key-open", f"unknown group '{name}'{hint}")
    return tuple(dict.fromkeys(names))


def _bad(flag: str, text: str) -> ConfigError:
    return ConfigError(f'Bad option: "--{flag}".\n{text}', key=flag)
