"""A repository in a folder of this machine."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from alipes.errors import RepositoryError
from alipes.repository.store.base import Names, NoFilesFoundError, PathExists, Store

__all__ = ["LocalFileSystem"]

# Hidden, so that neither servers nor people take it for a model.
_STAGE: Final = ".exporting-"


class LocalFileSystem(Store):
    """Files below a folder, which is made if it is missing.

    Files are written beside their place and renamed into it, which is one step for every reader. They are prepared in
    a hidden folder, which its owner keeps locked: an unlocked one belonged to a killed owner, and the next exporter
    removes it. Links in place of models are not followed when they are removed.
    """

    whole_models = True

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Opens a folder, making it and its parents if they are missing.

        Raises:
            RepositoryError: If it cannot be made, or is a file.
        """
        self.root = Path(root).absolute()
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RepositoryError(f"cannot make the repository {self.root}: {error.strerror}") from error

    def __str__(self) -> str:
        """The folder."""
        return str(self.root)

    def list(self, path: str | None = None) -> Names:  # noqa: D102
        try:
            return sorted(one.name for one in self._at(path or "").iterdir() if not one.name.startswith("."))
        except FileNotFoundError as error:
            raise NoFilesFoundError(f"there is no folder {path!r} in {self}") from error

    def isdir(self, path: str) -> bool:  # noqa: D102
        return self._at(path).is_dir()

    def glob(self, path: str) -> Names:  # noqa: D102
        return sorted(str(found.relative_to(self.root)) for found in self.root.glob(path) if found.name[0] != ".")

    def read(self, path: str, mode: str = "r") -> str | bytes:  # noqa: D102
        try:
            content = self._at(path).read_bytes()
        except FileNotFoundError as error:
            raise NoFilesFoundError(f"there is no file {path!r} in {self}") from error
        return content if "b" in mode else content.decode()

    def write(self, obj: str | bytes, path: str) -> None:  # noqa: D102
        if not isinstance(obj, str | bytes):
            raise TypeError(f"a file holds str or bytes, not {type(obj).__name__}")
        place = self._at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{place.name}-{secrets.token_hex(8)}")
        try:
            with draft.open("xb") as file:
                file.write(obj.encode() if isinstance(obj, str) else obj)
            draft.replace(place)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def swap(self, content: str, path: str, expected: str | None) -> None:  # noqa: D102
        # The caller holds the lock.
        self.write(content, path)

    def soft_makedirs(self, path: str) -> bool:  # noqa: D102
        place = self._at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            place.mkdir()
        except FileExistsError:
            return False
        return True

    def remove(self, path: str) -> None:  # noqa: D102
        place = self._at(path)
        found = [place] if place.is_symlink() or place.exists() else [self._at(name) for name in self.glob(path)]
        if not found:
            raise NoFilesFoundError(f"there is nothing called {path!r} in {self}")
        for one in found:
            _remove(one)

    def remove_empty(self, path: str) -> None:  # noqa: D102
        with suppress(OSError):
            self._at(path).rmdir()

    def delete(self) -> None:  # noqa: D102
        _remove(self.root)

    @contextmanager
    def lock(self) -> Iterator[None]:  # noqa: D102
        # The folder itself is locked: nothing is left behind, and processes and threads are kept apart alike.
        with _locked(self.root, wait=True):
            yield

    @contextmanager
    def stage(self) -> Iterator[Path]:  # noqa: D102
        with ExitStack() as held:
            with self.lock():
                self._sweep()
                folder = Path(tempfile.mkdtemp(prefix=_STAGE, dir=self.root))
                with suppress(BlockingIOError):
                    held.enter_context(_locked(folder, wait=False))
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def publish(self, prepared: Path, path: str) -> None:  # noqa: D102
        try:
            # Renaming a folder replaces an empty one and refuses any other.
            prepared.rename(self._at(path))
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise PathExists(f"there is something at {path!r} in {self} already") from error
            raise

    def replace(self, prepared: Path, path: str) -> None:  # noqa: D102
        place, old = self._at(path), prepared.with_name(f"{prepared.name}.replaced")
        place.rename(old)
        try:
            self.publish(prepared, path)
        except BaseException:
            old.rename(place)
            raise
        _remove(old)

    def _at(self, path: str) -> Path:
        place = self.root / path
        if ".." in Path(path).parts or Path(path).is_absolute():
            raise RepositoryError(f"{path!r} leads out of the repository {self}")
        return place

    def _sweep(self) -> None:
        """Remove what killed exporters left."""
        for left in self.root.glob(f"{_STAGE}*"):
            with suppress(BlockingIOError, FileNotFoundError), _locked(left, wait=False):
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _locked(folder: Path, *, wait: bool) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise
        except OSError:
            # Some network file systems lock no folders. What is renamed there still appears as a whole.
            if not wait:
                raise BlockingIOError(errno.EAGAIN, "cannot tell whether it is in use") from None
        yield
    finally:
        os.close(descriptor)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()
