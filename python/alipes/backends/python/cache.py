"""Keeps archives of Python environments unpacked, so that restarts and reloads find them ready.

They lie in a folder of this user below the one for temporary files. A name is made of the archive's path and of its
state, so a changed archive is unpacked again; what the older one was unpacked to goes as soon as no server uses it.

Servers side by side share the folder. Each holds a lock on what it uses as long as it lives: shared for a ready one,
exclusive while it unpacks. Locks go with the process that holds them, so one that was killed leaves nothing locked.
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

from alipes.backends.python.archive import unpack
from alipes.repository.private_folder import private_folder

__all__ = ["unpacked"]

_LOCK: Final = ".lock"
_READY: Final = ".ready"

_held: dict[str, int] = {}
"""Locks of this process by the name of what they hold; for as long as it lives, like the workers that run there."""

_holding = threading.Lock()


def unpacked(archive: Path, unpack: Callable[[Path, Path], None] = unpack) -> Path:
    """The folder with what an archive holds; waits where another load or server is unpacking it.

    Raises:
        ModelLoadError: If it cannot be unpacked, or the folder for temporary files cannot be trusted.
    """
    home = private_folder("environments")
    name = _name(archive)
    with _holding:
        is_held = name in _held
    if not is_held:
        _take(home, name, archive, unpack)
        _drop_older(home, name)
    return home / name


def _name(archive: Path) -> str:
    path = archive.resolve()
    state = path.stat()
    return f"{_digest(str(path))}-{_digest(f'{state.st_mtime_ns} {state.st_size} {state.st_ino}')}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def _take(home: Path, name: str, archive: Path, unpack: Callable[[Path, Path], None]) -> None:
    """Lock what is unpacked under a name, shared and for good; unpack it if needed."""
    lock = os.open(home / f"{name}{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            fcntl.flock(lock, fcntl.LOCK_SH)  # waits for one that unpacks
            if (home / f"{name}{_READY}").exists():
                break
            fcntl.flock(lock, fcntl.LOCK_UN)
            if _try_exclusive(lock):
                _unpack(home / name, home / f"{name}{_READY}", archive, unpack)
    except BaseException:
        os.close(lock)
        raise
    with _holding:
        if name in _held:  # two loads of this process came at the same time
            os.close(lock)
        else:
            _held[name] = lock


def _unpack(folder: Path, ready: Path, archive: Path, unpack: Callable[[Path, Path], None]) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # half of it, if a server was killed meanwhile
    folder.mkdir(mode=0o700)
    try:
        unpack(archive, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    ready.touch()


def _drop_older(home: Path, name: str) -> None:
    """Remove what the same archive was unpacked to before it changed, once no process uses it."""
    of_archive = name.partition("-")[0]
    for lock_path in home.glob(f"{of_archive}-*{_LOCK}"):
        other = lock_path.name.removesuffix(_LOCK)
        if other != name:
            _drop(home, other, lock_path)


def _drop(home: Path, name: str, lock_path: Path) -> None:
    lock = os.open(lock_path, os.O_RDWR | os.O_CLOEXEC)
    try:
        if _try_exclusive(lock):
            (home / f"{name}{_READY}").unlink(missing_ok=True)
            shutil.rmtree(home / name, ignore_errors=True)
    finally:
        os.close(lock)


def _try_exclusive(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
