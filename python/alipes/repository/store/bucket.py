"""A repository in a bucket, or anywhere else where fsspec finds files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from alipes.errors import RepositoryError
from alipes.process_folder import ProcessFolder
from alipes.progress.work import current
from alipes.repository.store.base import Names, NoFilesFoundError, PathExists, Store
from alipes.repository.store.conditional import Conflict, create, replace_unchanged, token_in, token_of
from alipes.repository.store.uploads import upload

__all__ = ["CLAIM", "BucketStore"]

CLAIM: Final = ".claim-"
"""Begins the name of an object that stands for a version while it is uploaded."""


class BucketStore(Store):
    """Objects below a prefix. There are no folders, no renaming and no locks, only single objects that appear whole.

    Exporters beside each other are kept apart by objects that only one of them can create: `<model>/.claim-<version>`
    for a version while it is uploaded. One that a killed exporter leaves costs its number and nothing else. A
    configuration is replaced only while it is the one that was read. A version's largest file comes last, so that a
    server that looks meanwhile finds no model rather than half of one.
    """

    def __init__(self, url: str, files: Any, root: str, *, create: bool = True, checked: bool = True) -> None:
        """Opens a prefix.

        Args:
            url: What the repository is called.
            files: The file system, without a cache of listings.
            root: Bucket and prefix.
            create: Whether to make the bucket if it is missing.
            checked: Whether to look at the bucket: keys that may only write cannot.

        Raises:
            RepositoryError: If it cannot be looked at or made.
        """
        self._url = url.rstrip("/")
        self._files = files
        self._root = root.strip("/")
        if checked:
            self._check(self._root.partition("/")[0], create=create)

    def _check(self, bucket: str, *, create: bool) -> None:
        files, url = self._files, self._url
        try:
            found = files.exists(bucket)
            if not found and create:
                files.mkdir(bucket)
        except (OSError, ValueError) as error:
            raise RepositoryError(f"cannot open {url}: {error}") from error
        except Exception as error:  # the errors of the clients beneath fsspec have no common class
            raise RepositoryError(f"cannot open {url}: {type(error).__name__}: {error}") from error
        if not found and not create:
            raise RepositoryError(f"cannot open {url}: there is no bucket {bucket}")

    def __str__(self) -> str:
        """The address."""
        return self._url

    def list(self, path: str | None = None) -> Names:  # noqa: D102
        # Some stores keep folders whose objects are gone. What counts is objects, and one listing brings them all.
        place = self._at(path or "")
        found = self._objects(place)
        if path and not found:
            raise NoFilesFoundError(f"there is no folder {path!r} in {self}")
        names = {one[len(place) + 1 :].partition("/")[0] for one in found}
        return sorted(name for name in names if not name.startswith("."))

    def isdir(self, path: str) -> bool:  # noqa: D102
        return bool(self._objects(self._at(path)))

    def glob(self, path: str) -> Names:  # noqa: D102
        found = (one.strip("/")[len(self._root) + 1 :] for one in self._files.glob(self._at(path)))
        return sorted(one for one in found if not one.rpartition("/")[2].startswith("."))

    def read(self, path: str, mode: str = "r") -> str | bytes:  # noqa: D102
        try:
            content: bytes = self._files.cat_file(self._at(path))
        except (FileNotFoundError, IsADirectoryError) as error:
            raise NoFilesFoundError(f"there is no file {path!r} in {self}") from error
        return content if "b" in mode else content.decode()

    def write(self, obj: str | bytes, path: str) -> None:  # noqa: D102
        if not isinstance(obj, str | bytes):
            raise TypeError(f"a file holds str or bytes, not {type(obj).__name__}")
        self._files.pipe_file(self._at(path), obj.encode() if isinstance(obj, str) else obj)

    def swap(self, content: str, path: str, expected: str | None) -> None:  # noqa: D102
        place = self._at(path)
        # The token before the content: what changes in between makes the token stale.
        token, now = token_of(self._files, place), self._text(path)
        if now == content:
            return
        try:
            if now is None and expected is None:
                create(self._files, place, content.encode())
            elif now is not None and now == expected:
                replace_unchanged(self._files, place, content.encode(), token)
            else:
                raise Conflict(place)
        except Conflict as error:
            # Of exporters beside each other, all but the first find that it was written already.
            if self._text(path) != content:
                raise PathExists(f"{path!r} in {self} was changed by another program") from error

    def _text(self, path: str) -> str | None:
        try:
            return str(self.read(path))
        except NoFilesFoundError:
            return None

    def soft_makedirs(self, path: str) -> bool:  # noqa: D102
        return not self.isdir(path)

    def remove(self, path: str) -> None:  # noqa: D102
        objects = self._all_of(self._at(path))
        if not objects and any(mark in path for mark in "*?["):
            objects = [found for one in self.glob(path) for found in self._all_of(self._at(one))]
        if not objects:
            raise NoFilesFoundError(f"there is nothing called {path!r} in {self}")
        self._remove(objects)

    def delete(self) -> None:
        """Remove everything below the prefix. The bucket stays: it may hold more than models."""
        self._remove(self._objects(self._root))

    def tokens(self, path: str = "") -> dict[str, str]:
        """Every object below a folder, by its path, with what changes whenever it does. One listing."""
        return {name[len(self._root) + 1 :]: token for name, token in self._listed(self._at(path)).items()}

    def fetch(self, path: str, file: Path) -> None:
        """Copy an object to a file.

        Raises:
            FileNotFoundError: If there is none.
        """
        self._files.get_file(self._at(path), str(file))

    @contextmanager
    def lock(self) -> Iterator[None]:  # noqa: D102
        yield

    @contextmanager
    def stage(self) -> Iterator[Path]:  # noqa: D102
        with closing(ProcessFolder("export")) as holder:
            folder = holder.path / "version"
            folder.mkdir()
            yield folder

    def publish(self, prepared: Path, path: str) -> None:  # noqa: D102
        parent, _, name = path.rpartition("/")
        claim = self._at(self.join(parent, f"{CLAIM}{name}"))
        try:
            create(self._files, claim, b"")
        except Conflict as error:
            raise PathExists(f"{path!r} in {self} is being exported by another program") from error
        try:
            # The owner of the claim before has released it with the version in its place.
            if self.isdir(path):
                raise PathExists(f"there is something at {path!r} in {self} already")
            try:
                self._upload(prepared, path)
            except BaseException:
                self._remove(self._objects(self._at(path)))
                raise
        finally:
            self._remove([claim])

    def replace(self, prepared: Path, path: str) -> None:
        """Put the objects of a folder in the place of others. Each is replaced as a whole, not all of them at once."""
        before = set(self._objects(self._at(path)))
        written = self._upload(prepared, path)
        self._remove(sorted(before - written))

    def _upload(self, prepared: Path, path: str) -> set[str]:
        files = sorted((one for one in prepared.rglob("*") if one.is_file()), key=lambda one: one.stat().st_size)
        places = [self._at(self.join(path, one.relative_to(prepared).as_posix())) for one in files]
        sizes = [file.stat().st_size for file in files]
        shown = current()
        shown.step("uploading", sum(sizes))
        for file, place, size in zip(files, places, sizes, strict=True):
            if size:
                upload(self._files, file, place, shown)
            else:
                self._files.pipe_file(place, b"")
        return set(places)

    def _all_of(self, place: str) -> Names:
        """The objects below a folder, or the one object that is no folder."""
        return self._objects(place) or ([place] if self._files.isfile(place) else [])

    def _objects(self, place: str) -> Names:
        """Every object below a folder, hidden ones too, and none of a folder whose name begins alike."""
        return list(self._listed(place))

    def _listed(self, place: str) -> dict[str, str]:
        try:
            found = self._files.find(place, detail=True)
        except FileNotFoundError:
            return {}
        if not isinstance(found, dict):  # adlfs, where the place is an object and no folder
            return {}
        objects = {name.strip("/"): seen for name, seen in found.items() if seen.get("type") != "directory"}
        return {name: token_in(seen) for name, seen in objects.items() if name.startswith(f"{place}/")}

    def _remove(self, objects: Names) -> None:
        for one in objects:
            with suppress(FileNotFoundError):
                self._files.rm_file(one)

    def _at(self, path: str) -> str:
        if ".." in path.split("/") or path.startswith("/"):
            raise RepositoryError(f"{path!r} leads out of the repository {self}")
        return self.join(self._root, path)
