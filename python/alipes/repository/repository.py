"""One or more repositories, read as one list of models."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from alipes.errors import RepositoryError
from alipes.repository.layout import ModelFolder, check_model_name, subdirectories

# Reason that the index gives for a model that several repositories claim.
DUPLICATE_REASON = "model appears in two or more repositories"


@dataclass(frozen=True, slots=True)
class Listing:
    """What the repositories hold at one moment.

    Attributes:
        folders: Model folders by name, in the order of their names.
        duplicates: Names that more than one repository has; none of these can be served.
    """

    folders: dict[str, ModelFolder]
    duplicates: frozenset[str]

    @property
    def names(self) -> tuple[str, ...]:
        """Every model that any repository names, sorted."""
        return tuple(sorted({*self.folders, *self.duplicates}))


class Repository:
    """The model folders of one or more repository paths."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Takes the paths in the order given; a path given twice counts once.

        Raises:
            RepositoryError: If a path is absent or no folder.
        """
        self.paths = tuple(dict.fromkeys(Path(path).absolute() for path in paths))
        for path in self.paths:
            _check_folder(path)

    def read(self) -> Listing:
        """Reads the folders of all repositories.

        Raises:
            RepositoryError: If a repository cannot be read.
        """
        folders: dict[str, ModelFolder] = {}
        duplicates: set[str] = set()
        for path in self.paths:
            for name in subdirectories(path):
                if name in folders:
                    duplicates.add(name)
                folders[name] = ModelFolder(name, path / name)
        unique = {name: folders[name] for name in sorted(folders) if name not in duplicates}
        return Listing(unique, frozenset(duplicates))

    def find(self, name: str) -> ModelFolder:
        """The folder of one model.

        Raises:
            RepositoryError: If the name is unsafe, unknown, or not unique across the repositories.
        """
        check_model_name(name)
        found = [path / name for path in self.paths if (path / name).is_dir()]
        if not found:
            raise RepositoryError(f"failed to poll model '{name}': not found in any model repository")
        if len(found) > 1:
            raise RepositoryError(f"failed to poll model '{name}': not unique across all model repositories")
        return ModelFolder(name, found[0])

    def stamp(self) -> tuple[int, ...]:
        """Changes when a model's folder is added to a repository or taken away. Costs one ``stat`` a repository."""
        return tuple(_folder_stamp(path) for path in self.paths)


def _check_folder(path: Path) -> None:
    try:
        path.stat()
    except OSError as error:
        raise RepositoryError(f"failed to stat file {path}") from error
    if not path.is_dir():
        raise RepositoryError(f"model repository path is not a directory: {path}")


def _folder_stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
