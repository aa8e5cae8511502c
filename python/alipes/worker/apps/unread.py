"""Calls of a model in an environment without the package that reads their documents."""

from __future__ import annotations

import json
from typing import Any

from alipes.errors import Unsupported

__all__ = ["Unread"]


class Unread:
    """Refuses bodies of calls; the model answers tensors."""

    def __init__(self, reason: str) -> None:
        """Takes why they cannot be read."""
        self._reason = reason

    def read(self, body: bytes, content_type: str, query: str) -> dict[str, Any]:
        """Refuses a body.

        Raises:
            Unsupported: Always.
        """
        raise Unsupported(self._reason)

    def encode(self, value: Any) -> bytes:
        """An error as JSON."""
        return json.dumps(value).encode()
