"""The key that a client shows its server."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from alipes.client.arguments import header_pairs
from alipes.errors import ConfigError

__all__ = ["VARIABLE", "keyed_headers"]

VARIABLE: Final = "ALIPES_API_KEY"
"""Holds the key where none is given. A server of the same environment takes every word of it as a key."""

_KEY: Final = re.compile(r"[!-~]+")
_SHOWN_BY: Final = ("authorization", "x-api-key")


def keyed_headers(headers: Mapping[str, str] | None, api_key: str | None = None) -> list[tuple[str, str]]:
    """The headers of each request, with the key among them.

    Args:
        headers: The caller's own. One that shows a key, or other credentials, counts more than the variable.
        api_key: The key; by default the first word of the environment's `ALIPES_API_KEY`, and empty for none.

    Raises:
        ConfigError: If the headers are none, or the key cannot stand in one. No message has the key in it.
    """
    pairs = header_pairs(headers)
    if api_key is None:
        if any(name.lower() in _SHOWN_BY for name, _ in pairs):
            return pairs
        api_key = next(iter(os.environ.get(VARIABLE, "").split()), "")
    elif not isinstance(api_key, str) or not (api_key == "" or _KEY.fullmatch(api_key)):
        raise ConfigError("api_key: expected a text of visible characters without white space", key="api_key")
    if not api_key:
        return pairs
    # Beside a proxy's credentials the key has a header of its own.
    has_credentials = any(name.lower() == "authorization" for name, _ in pairs)
    return [*pairs, ("x-api-key", api_key) if has_credentials else ("authorization", f"Bearer {api_key}")]
