"""What was fetched, by what it holds: servers beside each other, and a second start, fetch nothing twice.

Each entry has a file whose lock says who uses it: who fills it holds the lock alone, who serves it shares the lock. An
entry appears by one renaming, so it is whole or not there. What was half fetched stays for the next attempt, and what
an address held before goes once nobody uses it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from alipes.errors import ModelLoadError, RepositoryError
from alipes.repository.private_folder import private_folder
from alipes.repository.storage.source import Cancelled

__all__ = ["CachedEntry", "cached"]

_FOLDER: Final = "stores"
_LOCK: Final = ".lock-"
_DRAFT: Final = ".draft-"
_WAIT_S: Final = 0.2
"""Seconds between two looks at an entry that another process fills: a lock of a file announces nothing."""

Fill = Callable[[Path], None]
"""Fetches into a folder, which may hold what an earlier attempt has left."""


class CachedEntry:
    """An entry in use: it stays until it is closed, whatever others fetch."""

    def __init__(self, path: Path, lock: int) -> None:
        """Takes over the lock."""
        self.path = path
        self._lock: int | None = lock

    def close(self) -> None:
        """Let others take it away."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def cached(address: str, content: str, fill: Fill, cancelled: threading.Event) -> CachedEntry:
    """The entry of what an address holds, filled now where nobody has.

    Args:
        address: Where it comes from.
        content: What identifies what is there now: a digest, a revision, an entity tag.
        fill: Fetches it.
        cancelled: Is set once nobody needs it any more.

    Raises:
        RepositoryError: If it cannot be fetched or held.
    """
    key = hashlib.sha256(content.encode()).hexdigest()
    try:
        folder = private_folder(_FOLDER) / hashlib.sha256(address.encode()).hexdigest()
        folder.mkdir(mode=0o700, exist_ok=True)
        entry = _entry(folder, key, fill, cancelled)
        _take_away_others(folder, key)
    except (OSError, ModelLoadError) as error:
        raise RepositoryError(f"cannot hold {address} on this machine: {error}") from error
    return entry


def _entry(folder: Path, key: str, fill: Fill, cancelled: threading.Event) -> CachedEntry:
    lock = os.open(folder / f"{_LOCK}{key}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    whole, draft = folder / key, folder / f"{_DRAFT}{key}"
    try:
        while True:
            _lock(lock, fcntl.LOCK_SH, cancelled)
            if whole.is_dir():
                return CachedEntry(whole, lock)
            # Another process may come first while the shared lock becomes one of this process alone.
            _lock(lock, fcntl.LOCK_EX, cancelled)
            if not whole.is_dir():
                draft.mkdir(mode=0o700, exist_ok=True)
                fill(draft)
                draft.rename(whole)
    except BaseException:
        os.close(lock)
        raise


def _lock(lock: int, kind: int, cancelled: threading.Event) -> None:
    while True:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_UN)  # two that share it and both want it alone would wait for each other
        if cancelled.wait(_WAIT_S):
            raise Cancelled


def _take_away_others(folder: Path, key: str) -> None:
    """Remove what the address held before, as far as nobody uses it."""
    for path in folder.glob(f"{_LOCK}*"):
        other = path.name.removeprefix(_LOCK)
        if other == key:
            continue
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder / other, ignore_errors=True)
            shutil.rmtree(folder / f"{_DRAFT}{other}", ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
