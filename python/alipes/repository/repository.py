"""One or more repositories, read as one list of models."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from alipes.config.nearest import nearest
from alipes.config.paths import kind_of
from alipes.errors import RepositoryError
from alipes.repository.layout import ModelFolder, check_model_name, folder_time, holds_model, subdirectories
from alipes.repository.path_advice import beside_advice, empty_advice
from alipes.repository.store.open import client_of, without_scheme
from alipes.types import ModelKey

if TYPE_CHECKING:
    from alipes.repository.mirror import Mirror
    from alipes.repository.model_list import ModelList
    from alipes.repository.model_store import ModelStore

Need: TypeAlias = Literal["all", "one", "none"]
"""Which of the paths have to be there at the start. Those that are not are looked for again at each look."""

# Reason that the index gives for a model that several repositories claim.
DUPLICATE_REASON = "model appears in two or more repositories"

# Names that one that is not found is compared with, for a line of the log: each takes time, and requests can ask for
# any number of names that are not there.
MAX_COMPARED: Final = 1000


class NotAFolder(RepositoryError):
    """The path of a repository leads to something that is no folder."""


@dataclass(frozen=True)
class Listing:
    """What the repositories hold at one moment.

    Attributes:
        folders: Model folders, in the order of their names.
        duplicates: Names that more than one repository has; none of these can be served. None with namespaces.
        nameless: Folders whose names are no text, so that no request could name them; they are no models.
        unreadable: Why a repository could not be read, by its path or address.
        absent: Why a model that a list names is not there, by its name.
    """

    folders: dict[ModelKey, ModelFolder]
    duplicates: frozenset[str]
    nameless: frozenset[str] = frozenset()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def keys(self) -> tuple[ModelKey, ...]:
        """Every model that any repository names, sorted."""
        return tuple(sorted({*self.folders, *(ModelKey(name) for name in self.unserved)}))

    @cached_property
    def unserved(self) -> Mapping[str, str]:
        """Why a model that somebody names cannot be loaded, by its name."""
        return {**self.absent, **dict.fromkeys(self.duplicates, DUPLICATE_REASON)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every name that any repository has, sorted."""
        return tuple(sorted({key.name for key in self.keys}))


class Repository:
    """The model folders of one or more repository paths."""

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        *,
        namespacing: bool = False,
        need: Need = "all",
        stores: Iterable[ModelStore | ModelList] = (),
    ) -> None:
        """Takes the paths in the order given, folders before buckets and stores; a path given twice counts once.

        Args:
            paths: The repositories: folders, also as `file://` addresses, or addresses such as `s3://bucket/models`.
            namespacing: Whether a name may stand in several of them; each is a namespace then.
            need: Which of them have to be there.
            stores: Further places, whose models may be in any form.

        Raises:
            RepositoryError: If a folder that is needed is absent or none, or one is no text. What lies elsewhere is
                looked for by `fetch`.
        """
        wanted = list(dict.fromkeys(map(without_scheme, paths)))
        # Path -> the bucket that it is a copy of.
        self._mirrors = {mirror.folder: mirror for mirror in _mirrors(wanted)}
        folders = (Path(path).absolute() for path in wanted if not _is_address(path))
        self._stores = {store.key: store for store in stores}
        self.paths = tuple(dict.fromkeys((*folders, *self._mirrors, *self._stores)))
        self._namespacing = namespacing
        self._need = need
        # Path -> the names that its last look has found.
        self._seen: dict[Path, list[str]] = {}
        for path in self.paths:
            _check_text(path)
        self._refused = 0
        try:
            self._check([refusal for path in self.paths if (refusal := self._refusal(path)) is not None])
        except RepositoryError:
            self.close()
            raise

    def close(self) -> None:
        """Removes the copies of buckets, and what was arranged. For after the last version has ended."""
        for store in self._stores.values():
            store.close()
        for mirror in self._mirrors.values():
            mirror.close()

    def fetch(self) -> None:
        """Opens the buckets, and brings the stores here that lie elsewhere. May wait for a network for long.

        Raises:
            RepositoryError: If one that is needed cannot be had.
        """
        failures: list[RepositoryError] = []
        for bring in (
            *(mirror.open for mirror in self._mirrors.values()),
            *(store.fetch for store in self._stores.values()),
        ):
            try:
                bring()
            except RepositoryError as error:
                failures.append(error)
        self._check(failures)

    def cancel(self) -> None:
        """Gives up what is being fetched: the server is about to stop."""
        for store in self._stores.values():
            store.cancel()

    def read(self) -> Listing:
        """Reads the folders of all repositories.

        A repository that is gone has no folders; one that cannot be read has those of its last look.
        """
        unreadable = {self._called(path): why for path in self.paths if (why := self._look(path))}
        named = [(path, name, self._place(path, name)) for path in self.paths for name in self._seen[path]]
        places = [(path, name, place) for path, name, place in named if place is not None]
        found = [self._folder(path, name, place) for path, name, place in places if _is_text(name)]
        nameless = frozenset(str(place) for _, name, place in places if not _is_text(name))
        counts = Counter(folder.key for folder in found)
        duplicates = frozenset(key.name for key, count in counts.items() if count > 1)
        unique = {folder.key: folder for folder in found if folder.name not in duplicates}
        absent = {name: why for store in self._stores.values() for name, why in store.failures().items()}
        return Listing(dict(sorted(unique.items())), duplicates, nameless, unreadable, absent)

    def find(self, name: str) -> tuple[ModelFolder, ...]:
        """The folders of one model: one, or with namespaces one in each repository that has it.

        Raises:
            RepositoryError: If the name is unsafe, unknown, or not unique across the repositories.
        """
        check_model_name(name)
        found, unreadable = [], {}
        for path in self.paths:
            if why := self._refresh(path, name):
                unreadable[self._called(path)] = why
            elif (place := self._place(path, name)) is not None and kind_of(place) == "folder":
                found.append(self._folder(path, name, place))
            elif kind_of(path) != "folder" and path not in self._stores:
                unreadable[self._called(path)] = "there is no such folder"
        if not found:
            doubts = "".join(f" '{called}' cannot be read: {why}." for called, why in unreadable.items())
            raise RepositoryError(
                f"failed to poll model '{name}': model not found in any model repository.{self._nearest(name)}{doubts}"
            )
        if len(found) > 1 and not self._namespacing:
            raise RepositoryError(f"failed to poll model '{name}': not unique across all model repositories")
        return tuple(found)

    def marked(self) -> tuple[str, ...]:
        """The models that KServe's agent has put into stores."""
        return tuple(dict.fromkeys(name for store in self._stores.values() for name in store.marked()))

    def mistakes(self) -> tuple[str, ...]:
        """One sentence for each path that leads to the folder of a model, where that of a repository is expected."""
        found = []
        for path in (path for path in self.paths if path not in self._stores and holds_model(path)):
            called = self._called(path)
            above, _, name = called.rstrip("/").rpartition("/")
            found.append(
                f"serve its parent: alipes serve {above} (model repository '{called}' looks like the folder of one "
                f"model; --model-control-mode=explicit --load-model={name} serves it alone)"
            )
        return tuple(found)

    def advice(self) -> tuple[str, ...]:
        """One sentence for each repository without a folder of a model, or with a model's file beside such folders."""
        others = {*self._mirrors, *self._stores}
        ours = [path for path in self.paths if path not in others and kind_of(path) == "folder"]
        empty = {path: self._seen.get(path) == [] for path in ours}
        found = ((path, empty_advice(path) if empty[path] else beside_advice(path)) for path in ours)
        about_folders = tuple(
            f"model repository '{self._called(path)}' holds {'no model' if empty[path] else 'a loose file'}: {advice}"
            for path, advice in found
            if advice
        )
        return (*about_folders, *(advice for store in self._stores.values() for advice in store.advice()))

    def stamp(self) -> tuple[int, ...]:
        """Changes when a model's folder is added to a repository or taken away. Costs two system calls a repository."""
        return tuple(store.stamp() if (store := self._stores.get(path)) else folder_time(path) for path in self.paths)

    def list_stamp(self) -> tuple[int, ...]:
        """Changes when a list of models does, or one of its models has come. Costs a system call a list."""
        return tuple(store.stamp() for store in self._stores.values() if store.is_whole)

    def _check(self, refusals: Sequence[RepositoryError]) -> None:
        """Raises the first refusal, where a path that is needed was refused."""
        self._refused += len(refusals)
        if refusals and (self._need == "all" or (self._need == "one" and self._refused == len(self.paths))):
            raise refusals[0]

    def _refusal(self, path: Path) -> RepositoryError | None:
        """Why a folder or a store of this machine is none, or a bucket is of no known kind."""
        try:
            if (mirror := self._mirrors.get(path)) is not None:
                client_of(mirror.url)
            elif (store := self._stores.get(path)) is not None:
                store.check()
            else:
                _check_folder(path)
        except RepositoryError as error:
            return error
        return None

    def _look(self, path: Path) -> str:
        """Notes which folders a repository has now; why it cannot be read, empty where it can."""
        why = self._refresh(path)
        if (store := self._stores.get(path)) is not None:
            self._seen[path] = store.names()
            return why
        try:
            self._seen[path] = subdirectories(path)
        except RepositoryError as error:
            gone = isinstance(error.__cause__, FileNotFoundError | NotADirectoryError)
            self._seen[path] = [] if gone else self._seen.get(path, [])
            return str(error)
        return why

    def _nearest(self, name: str) -> str:
        """A sentence with the name that was probably meant, as far as there is one among those of the last look."""
        known = islice((name for names in self._seen.values() for name in names), MAX_COMPARED)
        close = nearest(name, known)
        return f" Did you mean '{close}'?" if close else ""

    def _refresh(self, path: Path, model: str = "") -> str:
        """Brings the copy of a bucket up to date; why that failed, empty where it did not."""
        try:
            if (mirror := self._mirrors.get(path)) is not None:
                mirror.refresh(model)
            elif (store := self._stores.get(path)) is not None:
                store.refresh(model)
        except RepositoryError as error:
            return str(error)
        return ""

    def _folder(self, path: Path, name: str, place: Path) -> ModelFolder:
        store = self._stores.get(path)
        called = self._called(path) if self._namespacing else ""
        if store is None:
            return ModelFolder(name, place, called)
        return ModelFolder(name, place, called, store.is_whole, store.is_bare(name))

    def _place(self, path: Path, name: str) -> Path | None:
        """Where the folder of a model is, or would be; None where a store has no such model."""
        store = self._stores.get(path)
        return store.folder_of(name) if store is not None else path / name

    def _called(self, path: Path) -> str:
        """What a repository was named when it was given."""
        if (store := self._stores.get(path)) is not None:
            return store.called
        mirror = self._mirrors.get(path)
        return str(path) if mirror is None else mirror.url


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


def _check_text(path: Path) -> None:
    if not _is_text(str(path)):
        raise RepositoryError(f"model repository path is not UTF-8: {str(path)!r}")


def _check_folder(path: Path) -> None:
    try:
        path.stat()
    except OSError as error:
        raise RepositoryError(f"failed to stat file {path}") from error
    if kind_of(path) != "folder":
        raise NotAFolder(f"repository path is not a valid directory: {path}")
