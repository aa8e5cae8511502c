"""A folder for temporary files that several stores share: each process folder looks at all others when it is made."""

from __future__ import annotations

import secrets
import threading
from pathlib import Path

from alipes.process_folder import ProcessFolder

__all__ = ["SharedFolder"]


class SharedFolder:
    """Folders in one folder, which is made with the first of them."""

    def __init__(self) -> None:
        """Makes nothing yet."""
        self._lock = threading.Lock()
        self._holder: ProcessFolder | None = None

    def part(self) -> Path:
        """A new folder in it.

        Raises:
            OSError: If it cannot be made.
        """
        with self._lock:
            if self._holder is None:
                self._holder = ProcessFolder("repository")
            path = self._holder.path / secrets.token_hex(8)
        path.mkdir()
        return path

    def close(self) -> None:
        """Removes it with all that it holds."""
        with self._lock:
            if self._holder is not None:
                self._holder.close()
