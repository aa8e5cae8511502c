"""Folders for temporary files that go with their process, also where it is killed.

A process that ends in order removes its own. One that is killed cannot: each folder holds a file that its process
keeps locked, and the system releases the lock whatever ends the process. The next process that makes such a folder, or
starts a server, removes those whose lock is free.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Final, Literal, get_args

__all__ = ["ProcessFolder", "sweep"]

Kind = Literal["attached", "cloud", "export", "load", "quickstart", "repository", "serve", "tune"]
_PREFIXES: Final[dict[Kind, str]] = {kind: f"alipes-{kind}-" for kind in get_args(Kind)}

_LOCK: Final = ".lock"
_NEW_LOCK: Final = ".lock-new"


class ProcessFolder:
    """A folder below the one for temporary files, for this user alone."""

    def __init__(self, kind: Kind) -> None:
        """Makes the folder. Those of processes that were killed go now.

        Args:
            kind: What it holds: a version on its way into a bucket, files of load requests, a copy of a repository,
                certificates of clusters,
                models of a script, or what a server writes that a script, a search or the quickstart runs.

        Raises:
            OSError: If it cannot be made.
        """
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIXES[kind]))
        try:
            lock = _locked(self.path)
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise
        # Gone with this object at the latest, also where the server never gets to start.
        self._remove = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Removes the folder with all that it holds."""
        self._remove()


def sweep() -> None:
    """Removes the folders of processes of this user that ended without doing so; those that cannot be seen stay."""
    try:
        left = [found for prefix in _PREFIXES.values() for found in Path(tempfile.gettempdir()).glob(f"{prefix}*")]
    except OSError:
        return
    for folder in left:
        _remove_if_left(folder)


def _locked(folder: Path) -> int:
    """The descriptor whose lock says that this process lives."""
    lock = os.open(folder / _NEW_LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Nobody finds it by its name before it is locked.
        (folder / _NEW_LOCK).rename(folder / _LOCK)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _remove(folder: Path, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # a process that was forked leaves it alone at its own end
        shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _remove_if_left(folder: Path) -> None:
    try:
        if folder.lstat().st_uid != os.getuid():
            return
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # just being made, or gone meanwhile
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)
