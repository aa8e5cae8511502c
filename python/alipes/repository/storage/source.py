"""What a store that lies elsewhere is asked for, and how it is told to stop."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Protocol

from alipes.errors import RepositoryError

__all__ = ["Cancelled", "Source"]


class Source(Protocol):
    """A place on the network that a store is read from."""

    def fetch(self, cancelled: threading.Event) -> Path:
        """Bring what is there to this machine, or bring it up to date.

        Args:
            cancelled: Is set once nobody needs it any more.

        Returns:
            The folder, or the one file. It stays as long as the source.

        Raises:
            RepositoryError: If it cannot be had.
        """

    def close(self) -> None:
        """Let go of what is on this machine."""


class Cancelled(RepositoryError):
    """The server stops, and does without."""

    def __init__(self) -> None:
        """Says so."""
        super().__init__("the server stops before the store is here")
