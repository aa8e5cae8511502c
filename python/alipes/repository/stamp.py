"""The state of a model's folder, so that a later look shows what has changed, and where.

A stamp is made of names, sizes, times and file numbers; no file is opened. Copies that keep their times, links that
point elsewhere and files that were taken away show as well as edits do.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

__all__ = ["ABSENT", "FolderStamp", "is_folder", "stamp_folder"]

# What a model is configured by: read and compared by content when it is loaded.
_CONFIGURATION: Final = ("config.pbtxt", "configs")

# Written by interpreters that look at a model's code; no part of it.
_CACHES: Final = ("__pycache__",)


@dataclass(frozen=True, slots=True)
class FolderStamp:
    """The look of a model's folder. Two are equal where nothing has changed.

    Attributes:
        folder: The folder itself, without what it holds.
        configuration: Its configuration files.
        versions: Each version's directory with all that is in it, by its name.
        shared: All else: labels, samples, environments.
    """

    folder: bytes
    configuration: bytes
    versions: Mapping[str, bytes]
    shared: bytes

    def of_version(self, version: int) -> tuple[bytes, bytes]:
        """What the version was made from, apart from the configuration."""
        return self.versions.get(str(version), b""), self.shared


ABSENT: Final = FolderStamp(b"", b"", MappingProxyType({}), b"")
"""The stamp of a folder that is not there."""


def stamp_folder(path: str | os.PathLike[str]) -> FolderStamp:
    """Looks at a model's folder; `ABSENT` where it cannot be read.

    Links are followed to what they name. A linked directory is entered where it stands directly in the folder, as the
    directory of a version may; further down it is not, so that a circle of links ends.
    """
    root = Path(path)
    try:
        with os.scandir(root) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return ABSENT
    parts: dict[str, list[str]] = {"configuration": [], "shared": []}
    versions: dict[str, bytes] = {}
    for entry in entries:
        if entry.name.isdecimal() and is_folder(entry):
            versions[entry.name] = _digest(_tree(entry.path))
        elif entry.name not in _CACHES:
            kind = "configuration" if entry.name in _CONFIGURATION else "shared"
            parts[kind] += (f"{entry.name}\0", *_tree(entry.path))
    return FolderStamp(
        folder=_digest([_look(root)]),
        configuration=_digest(parts["configuration"]),
        versions=MappingProxyType(versions),
        shared=_digest(parts["shared"]),
    )


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder, or a link to one; a link that leads in a circle is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _tree(place: str) -> Iterator[str]:
    """The look of a file, or of a directory and of everything in it, however deep; links in it are not entered."""
    yield _look(Path(place))
    folders = [place]
    while folders:
        folder = folders.pop()
        for entry in _entries(folder):
            yield f"{folder.removeprefix(place)}/{entry.name}\0{_look(Path(entry.path))}"
            if not entry.is_symlink() and is_folder(entry):
                folders.append(entry.path)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What stands in a folder, by name; nothing of what is no folder, or cannot be read."""
    try:
        with os.scandir(folder) as found:
            return sorted((entry for entry in found if entry.name not in _CACHES), key=lambda entry: entry.name)
    except OSError:
        return []


def _look(path: Path) -> str:
    try:
        seen = path.stat()
    except OSError:  # gone since it was listed, or a link to nowhere
        return "?"
    # A directory's size depends on how its names are stored, not on the names.
    size = 0 if stat.S_ISDIR(seen.st_mode) else seen.st_size
    return f"{seen.st_mtime_ns} {size} {seen.st_dev} {seen.st_ino}"


def _digest(parts: Iterator[str] | list[str]) -> bytes:
    made = hashlib.blake2b(digest_size=16)
    for part in parts:
        made.update(part.encode(errors="surrogateescape"))
        made.update(b"\n")
    return made.digest()
