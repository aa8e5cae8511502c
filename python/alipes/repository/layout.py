"""A model's folder: its name, its version directories and what it looks like.

Source: Triton's model repository layout (``<repository>/<model>/<version>/<file>``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from alipes.config.advice import holds_file
from alipes.config.paths import kind_of
from alipes.errors import RepositoryError
from alipes.repository.stamp import FolderStamp, is_folder, stamp_folder
from alipes.types import ModelKey

# Folders beside the versions that belong to the model but are no version.
RESERVED = frozenset({"warmup", "initial_state", "configs"})

# File systems take no longer name of a folder; a request may bring a name of megabytes.
MAX_MODEL_NAME_BYTES = 255

# Versions are signed 64-bit on the wire; 18 digits always fit.
MAX_VERSION_DIGITS = 18


@dataclass(frozen=True, slots=True)
class VersionDirectories:
    """What the folder of a model holds.

    Attributes:
        versions: Versions that have a directory, ascending.
        ignored: One sentence for each directory that looks like a version and is not one.
    """

    versions: tuple[int, ...]
    ignored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The folder of one model in one repository.

    Attributes:
        name: The model.
        path: Where it is.
        namespace: The repository, where several may have a model of this name; else empty.
        is_whole: Whether it came with all that it holds, so that nobody has to wait for the rest.
        is_bare: Whether it came without a configuration, in a store, as its author has published it.
    """

    name: str
    path: Path
    namespace: str = ""
    is_whole: bool = False
    is_bare: bool = False

    @property
    def key(self) -> ModelKey:
        """The identity of the model."""
        return ModelKey(self.name, self.namespace)

    def version_path(self, version: int) -> Path:
        """The directory of a version; it may be absent."""
        return self.path / str(version)

    def scan_versions(self) -> VersionDirectories:
        """Reads which version directories there are.

        Raises:
            RepositoryError: If the folder cannot be read.
        """
        versions: list[int] = []
        ignored: list[str] = []
        for name in subdirectories(self.path):
            if name in RESERVED:
                continue
            if name.startswith("0") and name != "0":
                ignored.append(f"ignore version directory '{name}' which contains leading zeros in its directory name")
            elif not _is_version(name):
                ignored.append(f"ignore version directory '{name}' which fails to convert to integral number")
            else:
                versions.append(int(name))
        return VersionDirectories(tuple(sorted(versions)), tuple(ignored))

    def is_blank(self) -> bool:
        """Whether there is nothing in it that a model could be made of: no configuration and no version."""
        configured = any(kind_of(self.path / name) != "nothing" for name in ("config.pbtxt", "configs"))
        try:
            return not configured and not any(_is_version(name) for name in subdirectories(self.path))
        except RepositoryError:
            return False

    def stamp(self) -> FolderStamp:
        """What the folder looks like now; a later look differs where anything in it has changed."""
        return stamp_folder(self.path)


def holds_model(path: Path) -> bool:
    """Whether a folder is that of one model, by what it holds, rather than a repository."""
    if kind_of(path / "config.pbtxt") == "file":
        return True
    try:
        names = subdirectories(path)
    except RepositoryError:
        return False
    return any(_is_version(name) and holds_file(path / name) for name in names)


def check_model_name(name: str) -> None:
    """Refuses a name that could leave the repository or that no folder can have.

    Raises:
        RepositoryError: If the name is blank or too long, holds a separator or a NUL, or is or climbs to a parent
            folder.
    """
    unsafe = not name.strip() or name.startswith(".") or ".." in name or any(mark in name for mark in ("/", "\\", "\0"))
    if unsafe:
        raise RepositoryError(f"invalid model name {name!r}: expected the name of a folder in a model repository")
    if len(os.fsencode(name)) > MAX_MODEL_NAME_BYTES:
        raise RepositoryError(
            f"invalid model name '{name[:40]}...': expected at most {MAX_MODEL_NAME_BYTES} bytes, as for a folder"
        )


def folder_time(path: Path) -> int:
    """Changes when something is added to a folder or taken away; 0 where it cannot be read."""
    try:
        return path.stat().st_mtime_ns if os.access(path, os.R_OK | os.X_OK) else 0
    except OSError:
        return 0


def subdirectories(path: Path) -> list[str]:
    """Names of the folders in ``path``, sorted. Hidden ones (``.git``, ``.ipynb_checkpoints``) are no model.

    Raises:
        RepositoryError: If the folder cannot be read.
    """
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if not entry.name.startswith(".") and is_folder(entry))
    except OSError as error:
        raise RepositoryError(f"failed to open directory {path}: {error.strerror}") from error


def _is_version(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= MAX_VERSION_DIGITS
