"""One or more repositories, read as one list of models."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from alipes.config.paths import kind_of
from alipes.errors import RepositoryError
from alipes.repository.layout import ModelFolder, check_model_name, subdirectories
from alipes.types import ModelKey

if TYPE_CHECKING:
    from alipes.repository.mirror import Mirror

# Reason that the index gives for a model that several repositories claim.
DUPLICATE_REASON = "model appears in two or more repositories"


@dataclass(frozen=True)
class Listing:
    """What the repositories hold at one moment.

    Attributes:
        folders: Model folders, in the order of their names.
        duplicates: Names that more than one repository has; none of these can be served. None with namespaces.
        nameless: Folders whose names are no text, so that no request could name them; they are no models.
    """

    folders: dict[ModelKey, ModelFolder]
    duplicates: frozenset[str]
    nameless: frozenset[str] = frozenset()

    @cached_property
    def keys(self) -> tuple[ModelKey, ...]:
        """Every model that any repository names, sorted."""
        return tuple(sorted({*self.folders, *(ModelKey(name) for name in self.duplicates)}))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every name that any repository has, sorted."""
        return tuple(sorted({key.name for key in self.keys}))


class Repository:
    """The model folders of one or more repository paths."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]], *, namespacing: bool = False) -> None:
        """Takes the paths in the order given, folders before buckets; a path given twice counts once.

        Args:
            paths: The repositories: folders, or addresses such as `s3://bucket/models`.
            namespacing: Whether a name may stand in several of them; each is a namespace then.

        Raises:
            RepositoryError: If a path is absent or no folder.
        """
        wanted = list(dict.fromkeys(paths))
        # Path -> the bucket that it is a copy of.
        self._mirrors = {mirror.folder: mirror for mirror in _mirrors(wanted)}
        folders = (Path(path).absolute() for path in wanted if not _is_address(path))
        self.paths = (*dict.fromkeys(folders), *self._mirrors)
        self._namespacing = namespacing
        for path in self.paths:
            _check_folder(path)

    def close(self) -> None:
        """Removes the copies of buckets. For after the last version has ended."""
        for mirror in self._mirrors.values():
            mirror.close()

    def read(self) -> Listing:
        """Reads the folders of all repositories.

        Raises:
            RepositoryError: If a repository cannot be read.
        """
        for mirror in self._mirrors.values():
            mirror.refresh()
        places = [(path, name) for path in self.paths for name in subdirectories(path)]
        found = [self._folder(path, name) for path, name in places if _is_text(name)]
        nameless = frozenset(str(path / name) for path, name in places if not _is_text(name))
        counts = Counter(folder.key for folder in found)
        duplicates = frozenset(key.name for key, count in counts.items() if count > 1)
        unique = {folder.key: folder for folder in found if folder.name not in duplicates}
        return Listing(dict(sorted(unique.items())), duplicates, nameless)

    def find(self, name: str) -> tuple[ModelFolder, ...]:
        """The folders of one model: one, or with namespaces one in each repository that has it.

        Raises:
            RepositoryError: If the name is unsafe, unknown, or not unique across the repositories.
        """
        check_model_name(name)
        for mirror in self._mirrors.values():
            mirror.refresh(name)
        found = tuple(self._folder(path, name) for path in self.paths if kind_of(path / name) == "folder")
        if not found:
            raise RepositoryError(f"failed to poll model '{name}': not found in any model repository")
        if len(found) > 1 and not self._namespacing:
            raise RepositoryError(f"failed to poll model '{name}': not unique across all model repositories")
        return found

    def stamp(self) -> tuple[int, ...]:
        """Changes when a model's folder is added to a repository or taken away. Costs one ``stat`` a repository."""
        return tuple(_folder_stamp(path) for path in self.paths)

    def _folder(self, path: Path, name: str) -> ModelFolder:
        mirror = self._mirrors.get(path)
        called = str(path) if mirror is None else mirror.url
        return ModelFolder(name, path / name, called if self._namespacing else "")


def _is_address(path: str | os.PathLike[str]) -> bool:
    return "://" in os.fspath(path)


def _mirrors(paths: Iterable[str | os.PathLike[str]]) -> list[Mirror]:
    addresses = [os.fspath(path) for path in paths if _is_address(path)]
    if not addresses:
        return []
    from alipes.repository.mirror import Mirror

    return [Mirror(address) for address in addresses]


def _is_text(name: str) -> bool:
    """Whether a name is UTF-8, and not bytes that stand for none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_folder(path: Path) -> None:
    if not _is_text(str(path)):
        raise RepositoryError(f"model repository path is not UTF-8: {str(path)!r}")
    try:
        path.stat()
    except OSError as error:
        raise RepositoryError(f"failed to stat file {path}") from error
    if kind_of(path) != "folder":
        raise RepositoryError(f"model repository path is not a directory: {path}")


def _folder_stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
