"""Files that arrive in a folder, each seen once."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple

from alipes.errors import BatchError, ConfigError

__all__ = ["Arrivals", "Arrived"]

_SUFFIXES: Final = (".npy", ".npz", ".h5", ".hdf5", ".hdf")
_RECENT_S: Final = 0.1
"""The time of a folder has steps of some milliseconds: what came in the same step as a look is found by another."""
_FULL_LOOK_S: Final = 1.0
"""Some network file systems tell the time of a folder late."""


class Arrived(NamedTuple):
    """A file that was not there before.

    Attributes:
        file: Its name.
        seen_s: When it was seen, on a clock that never jumps.
        at_start: Whether it was there at the first look, and may have been for long.
    """

    file: str
    seen_s: float
    at_start: bool


class Arrivals:
    """The files of a folder. Names that begin with a dot are of files that are not whole yet."""

    def __init__(self, frames: str | os.PathLike[str]) -> None:
        """Looks for nothing yet.

        Args:
            frames: The folder, or a pattern of files in it.

        Raises:
            ConfigError: If there is no such folder.
        """
        place = Path(frames)
        wild = any(sign in place.name for sign in "*?[")
        self.folder = place.parent if wild else place
        self._pattern = place.name if wild else "*"
        if not self.folder.is_dir():
            raise ConfigError(
                f"{self.folder} is no folder: make it, or name the one that frames arrive in", key="frames"
            )
        self._there: set[str] = set()
        self._changed_ns = -1
        self._changed_s = self._looked_s = float("-inf")

    def look(self, now_s: float) -> list[Arrived]:
        """What has come since the last look.

        Raises:
            BatchError: If the folder is gone.
        """
        first = self._changed_ns == -1
        try:
            changed_ns = os.stat(self.folder).st_mtime_ns  # noqa: PTH116 - some hundred times a second
            if changed_ns != self._changed_ns:
                self._changed_ns, self._changed_s = changed_ns, now_s
            elif now_s - self._changed_s > _RECENT_S and now_s - self._looked_s < _FULL_LOOK_S:
                return []
            self._looked_s = now_s
            there = {name for name in os.listdir(self.folder) if self._is_frame(name)}  # noqa: PTH208 - names alone
        except OSError as error:
            raise BatchError(
                f"{self.folder}, where frames arrive, cannot be read ({error.strerror}): start again when it is back"
            ) from error
        new = sorted(there - self._there)
        self._there = there
        return [Arrived(name, now_s, first) for name in new]

    def _is_frame(self, name: str) -> bool:
        return name[0] != "." and name.endswith(_SUFFIXES) and fnmatch(name, self._pattern)
