"""A folder of this user alone below the one for temporary files, for what servers side by side share."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from alipes.errors import ModelLoadError

__all__ = ["private_folder"]


def private_folder(name: str) -> Path:
    """The folder of that name, made where it is missing.

    Its name is no secret, so another user may have created it first.

    Raises:
        ModelLoadError: If others may write to it, or it is no folder.
        OSError: If it cannot be made.
    """
    home = Path(tempfile.gettempdir()) / f"alipes-{os.getuid()}"
    for folder in (home, home / name):
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o077:
            raise ModelLoadError(
                f"{folder} is not a folder of this user alone; remove it, or set TMPDIR to another folder",
                backend="python",
            )
    return home / name
