"""Files that are whole or not there: written beside their place, and renamed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from alipes.errors import BatchError

__all__ = ["write_aside", "write_file", "write_problem"]

_DISK_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_aside(path: Path, write: Callable[[Path], Any], folder: Path) -> None:
    """Writes a file beside its place, and renames it.

    Args:
        path: Its place.
        write: Writes the file that it is called with.
        folder: The folder of the run, for messages.

    Raises:
        BatchError: If the disk is full, or does not take it.
    """
    aside = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        write_file(aside, write, folder)
        aside.rename(path)
    finally:
        aside.unlink(missing_ok=True)


def write_file(path: Path, write: Callable[[Path], Any], folder: Path) -> None:
    """Writes a file; nothing is left of one that cannot be written.

    Raises:
        BatchError: If the disk is full, or does not take it.
    """
    try:
        write(path)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise write_problem(error, folder) from error


def write_problem(error: OSError, folder: Path) -> BatchError:
    """Why a file of a run cannot be written."""
    reason = error.strerror or f"{error}"
    if error.errno in _DISK_FULL:
        return BatchError(f"there is no room for results in {folder} ({reason}): make room, and start the same again")
    return BatchError(f"{folder} cannot be written: {reason}")
