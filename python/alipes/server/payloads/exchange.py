"""Which exchange a payload belongs to: the caller's own id of it, as KServe's logger has it, or one of the server."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final
from urllib.parse import unquote

__all__ = ["headers_to_copy", "read_head"]

_ID_HEADER: Final = "ce-id"


def headers_to_copy(logged: Collection[str], redacted: Collection[str]) -> tuple[str, ...]:
    """The headers that the data plane is to copy: those that are logged, and the caller's id of the exchange."""
    names = [name for name in logged if name != _ID_HEADER]
    return tuple(names if _ID_HEADER in redacted else [*names, _ID_HEADER])


def read_head(text: str) -> dict[str, Any]:
    """What the data plane says of a payload, with the caller's id as its exchange where there is one."""
    head: dict[str, Any] = json.loads(text)
    if callers := head["headers"].pop(_ID_HEADER, ""):
        head["exchange"] = unquote(callers)
    return head
