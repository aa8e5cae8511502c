"""A bucket's repository as a folder that models can be loaded from, brought up to date at each look."""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from alipes.errors import RepositoryError
from alipes.repository.store.bucket import CLAIM, BucketStore
from alipes.repository.store.open import open_store

__all__ = ["Mirror"]


class Mirror:
    """A copy of a bucket below a folder for temporary files.

    The tokens of the objects, in one listing, show what has changed; only that is fetched, and each file is replaced at
    once, so that models loaded from the file before go on. Versions that an exporter is still uploading are left out.
    """

    def __init__(self, url: str) -> None:
        """Opens a bucket; nothing is fetched yet.

        Raises:
            RepositoryError: If it cannot be opened.
        """
        store = open_store(url, create=False)
        assert isinstance(store, BucketStore), url
        self.url = url
        # Gone with this object at the latest, also where the server never gets to start.
        self._holder = tempfile.TemporaryDirectory(prefix="alipes-repository-", ignore_cleanup_errors=True)
        self.folder = Path(self._holder.name)
        self._store = store
        self._have: dict[str, str] = {}
        self._lock = threading.Lock()

    def refresh(self, model: str = "") -> None:
        """Fetch what has changed, and remove what is gone.

        Args:
            model: The model to look at; all where left out.

        Raises:
            RepositoryError: If the bucket cannot be read.
        """
        with self._lock:
            try:
                wanted = _visible(self._store.tokens(model))
                prefix = f"{model}/" if model else ""
                gone = [path for path in self._have if path.startswith(prefix) and path not in wanted]
                for path in gone:
                    self._forget(path)
                for path, token in wanted.items():
                    if self._have.get(path) != token:
                        self._fetch(path, token)
            except RepositoryError:
                raise
            except Exception as error:  # the errors of the clients beneath fsspec have no common class
                raise RepositoryError(f"failed to read {self.url}: {type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Remove the copy."""
        self._holder.cleanup()

    def _fetch(self, path: str, token: str) -> None:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{secrets.token_hex(8)}")
        try:
            self._store.fetch(path, draft)
            draft.replace(place)
        except FileNotFoundError:  # gone since it was listed
            return
        finally:
            draft.unlink(missing_ok=True)
        self._have[path] = token

    def _forget(self, path: str) -> None:
        del self._have[path]
        place = self.folder / path
        place.unlink(missing_ok=True)
        for folder in place.parents:
            if folder == self.folder or any(folder.iterdir()):
                break
            folder.rmdir()


def _visible(tokens: Mapping[str, str]) -> dict[str, str]:
    """Without hidden files, paths that lead elsewhere, and versions that an exporter is uploading."""
    claimed = tuple(f"{path.replace(CLAIM, '', 1)}/" for path in tokens if path.rpartition("/")[2].startswith(CLAIM))
    found = {}
    for path, token in tokens.items():
        parts = path.split("/")
        odd = any(part.startswith(".") or part == "" or "\0" in part for part in parts)
        if not odd and len(parts) > 1 and not path.startswith(claimed):
            found[path] = token
    return found
