"""A bucket's repository as a folder that models can be loaded from, brought up to date at each look."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from alipes.errors import RepositoryError
from alipes.process_folder import ProcessFolder
from alipes.repository.keyed_locks import KeyedLocks
from alipes.repository.store.bucket import CLAIM, BucketStore
from alipes.repository.store.open import open_store

__all__ = ["Mirror"]


class Mirror:
    """A copy of a bucket below a folder for temporary files.

    The tokens of the objects, in one listing, show what has changed; only that is fetched, and each file is replaced at
    once, so that models loaded from the file before go on. Versions that an exporter is still uploading are left out.
    """

    def __init__(
        self,
        url: str,
        *,
        whole: bool = False,
        only: str = "",
        admit: Callable[[str], bool] | None = None,
        **options: Any,
    ) -> None:
        """Makes room for a copy; nothing is opened or fetched yet.

        Args:
            url: The bucket's repository.
            whole: Whether everything belongs together, and files may lie beside the folders: it is a store of any form.
            only: The one file of a whole that is wanted; empty for all.
            admit: Whether a file of a whole is wanted, by its path; all are where left out.
            options: What opening the bucket takes, as fsspec has it.

        Raises:
            RepositoryError: If there is no room.
        """
        self.url = url
        self._whole, self._only, self._admit, self._options = whole, only, admit, options
        try:
            self._holder = ProcessFolder("repository")
            self.folder = self._holder.path / "models"
            self.folder.mkdir()
        except OSError as error:
            raise RepositoryError(f"cannot make a folder for a copy of {url}: {error}") from error
        self._store: BucketStore | None = None
        # By model: the path of each file in it, and the token of the object that it was fetched from.
        self._have: dict[str, dict[str, str]] = {}
        self._locks: KeyedLocks[str] = KeyedLocks()

    def open(self) -> BucketStore:
        """The bucket, which is opened at the first call that succeeds.

        Raises:
            RepositoryError: If it cannot be opened.
        """
        if self._store is None:
            store = open_store(self.url, create=False, **self._options)
            assert isinstance(store, BucketStore), self.url
            self._store = store
        return self._store

    def refresh(self, model: str = "") -> None:
        """Fetch what has changed, and remove what is gone. Looks at different models never wait for each other.

        Args:
            model: The model to look at; all where left out.

        Raises:
            RepositoryError: If the bucket cannot be read.
        """
        try:
            if model:
                self._refresh(model)
                return
            found = self._grouped(self.open().tokens())
            for name in sorted({*found, *self._have}):
                if found.get(name, {}) != self._have.get(name, {}):
                    self._refresh(name)
        except RepositoryError:
            raise
        except Exception as error:  # the errors of the clients beneath fsspec have no common class
            raise RepositoryError(f"failed to read {self.url}: {type(error).__name__}: {error}") from error

    def _refresh(self, model: str) -> None:
        with self._locks.of(model):
            # Listed again under the lock: an older listing would take away what somebody else has just fetched.
            wanted = self._grouped(self.open().tokens(model)).get(model, {})
            have = self._have.get(model, {})
            for path in [path for path in have if path not in wanted]:
                del have[path]
                self._remove(path)
            for path, token in wanted.items():
                if have.get(path) != token and self._fetch(path):
                    self._have.setdefault(model, have)[path] = token
            if not have:
                self._have.pop(model, None)

    def close(self) -> None:
        """Remove the copy."""
        self._holder.close()

    def _grouped(self, tokens: Mapping[str, str]) -> dict[str, dict[str, str]]:
        """What is visible of each model; of all together where the copy is of a whole."""
        if self._whole:
            visible = _visible(tokens, in_folders=False)
            if self._only:
                visible = {path: token for path, token in visible.items() if path == self._only}
            elif self._admit is not None:
                visible = {path: token for path, token in visible.items() if self._admit(path)}
            return {"": visible} if visible else {}
        return _by_model(tokens)

    def _fetch(self, path: str) -> bool:
        """Fetches a file; false if it is gone since it was listed."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{secrets.token_hex(8)}")
        try:
            self.open().fetch(path, draft)
            draft.replace(place)
        except FileNotFoundError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        return True

    def _remove(self, path: str) -> None:
        place = self.folder / path
        place.unlink(missing_ok=True)
        for folder in place.parents:
            if folder == self.folder or any(folder.iterdir()):
                break
            folder.rmdir()


def _by_model(tokens: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What is visible of each model."""
    models: dict[str, dict[str, str]] = {}
    for path, token in _visible(tokens).items():
        models.setdefault(path.partition("/")[0], {})[path] = token
    return models


def _visible(tokens: Mapping[str, str], *, in_folders: bool = True) -> dict[str, str]:
    """Without hidden files, paths that lead elsewhere, and versions that an exporter is uploading."""
    claimed = tuple(f"{path.replace(CLAIM, '', 1)}/" for path in tokens if path.rpartition("/")[2].startswith(CLAIM))
    found = {}
    for path, token in tokens.items():
        parts = path.split("/")
        odd = any(part.startswith(".") or part == "" or "\0" in part for part in parts)
        if not odd and (len(parts) > 1 or not in_folders) and not path.startswith(claimed):
            found[path] = token
    return found
