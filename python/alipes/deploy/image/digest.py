"""Digests, as images write them, and bytes that are counted on their way."""

from __future__ import annotations

import hashlib
from typing import Final, Protocol

__all__ = ["CountedWriter", "Writer", "digest_of"]

_ALGORITHM: Final = "sha256"


class Writer(Protocol):
    """What bytes are written to."""

    def write(self, data: bytes, /) -> object:
        """Takes bytes."""


class CountedWriter:
    """Passes bytes on, and knows the digest and the number of all that went through."""

    def __init__(self, to: Writer | None = None) -> None:
        """Begins with none; without `to`, the bytes are only counted."""
        self._to = to
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes, /) -> int:
        """Takes bytes."""
        self._hash.update(data)
        self.size += len(data)
        if self._to is not None:
            self._to.write(data)
        return len(data)

    def flush(self) -> None:
        """Nothing: nothing is held back."""

    @property
    def digest(self) -> str:
        """The digest of what was written so far."""
        return f"{_ALGORITHM}:{self._hash.hexdigest()}"


def digest_of(data: bytes) -> str:
    """The digest of bytes."""
    return f"{_ALGORITHM}:{hashlib.sha256(data).hexdigest()}"
