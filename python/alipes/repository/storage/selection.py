"""The wanted files of a store, as links in a folder for temporary files: the store itself is left as it is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from alipes.config.paths import kind_of
from alipes.errors import RepositoryError
from alipes.process_folder import ProcessFolder
from alipes.repository.storage.limits import MAX_FILES
from alipes.repository.storage.patterns import ALLOW, IGNORE, Patterns

__all__ = ["Selection"]


class Selection:
    """The files of a store that patterns admit, brought up to date at each look. Looks may come from several threads.

    Attributes:
        left_out: How many files the last look left out.
    """

    def __init__(self, patterns: Patterns) -> None:
        """Looks at nothing yet.

        Args:
            patterns: Which files are wanted; without any, a store is its own selection.
        """
        self.left_out = 0
        self._patterns = patterns
        self._lock = threading.Lock()
        self._holder: ProcessFolder | None = None
        # By path within the store: what the link leads to.
        self._links: dict[str, Path] = {}

    def of(self, store: Path) -> Path:
        """The folder with the wanted files; the store itself where it is a file, which somebody has named.

        Raises:
            RepositoryError: If it holds too many files, or the links cannot be made.
        """
        if not self._patterns or kind_of(store) != "folder":
            return store
        with self._lock:
            files = _files_below(store)
            wanted = {name: file for name, file in files.items() if self._patterns.admit(name)}
            self.left_out = len(files) - len(wanted)
            try:
                return self._linked(store, wanted)
            except OSError as error:
                raise RepositoryError(f"cannot link the wanted files of store '{store}': {error}") from error

    def explain(self) -> str:
        """What an error adds where no model was found; nothing where all files are wanted."""
        return f"; {ALLOW} and {IGNORE} say which of its files are wanted" if self._patterns else ""

    def close(self) -> None:
        """Removes the links."""
        if self._holder is not None:
            self._holder.close()

    def _linked(self, store: Path, wanted: dict[str, Path]) -> Path:
        if self._holder is None:
            self._holder = ProcessFolder("repository")
        # A model without another name is called by the folder of its store.
        folder = self._holder.path / "selected" / (store.absolute().name or "model")
        folder.mkdir(parents=True, exist_ok=True)
        for name in self._links.keys() - wanted.keys():
            _unlink(folder, name)
            del self._links[name]
        for name, file in wanted.items():
            if self._links.get(name) != file:
                _link(folder / name, file)
                self._links[name] = file
        return folder


def _link(place: Path, file: Path) -> None:
    """A link to a file, which replaces another at once."""
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{place.name}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(file)
    draft.replace(place)


def _unlink(folder: Path, name: str) -> None:
    """Without a link, and without the folders that it leaves empty."""
    place = folder / name
    place.unlink(missing_ok=True)
    for parent in place.parents:
        if parent == folder or any(parent.iterdir()):
            break
        parent.rmdir()


def _files_below(store: Path) -> dict[str, Path]:
    """The files of a store by their paths in it, hidden ones left out; linked folders are followed, circles are not."""
    found: dict[str, Path] = {}
    seen: set[tuple[int, int]] = set()
    for parent, folders, names in os.walk(store, followlinks=True):
        look = Path(parent).stat()
        if (look.st_dev, look.st_ino) in seen:
            folders.clear()
            continue
        seen.add((look.st_dev, look.st_ino))
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                file = Path(parent, name)
                found[str(file.relative_to(store))] = file.absolute()
        if len(found) > MAX_FILES:
            raise RepositoryError(f"'{store}' holds more than {MAX_FILES} files: it is no model and no store")
    return found
