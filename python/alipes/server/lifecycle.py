"""The life of each model: read its folder, plan, build every version, publish them at once, index; and unload.

Jobs of one model run one after the other (see `loader`); where the job of an ensemble loads the ensemble's models, the
lock of each keeps their own jobs away. A load that fails, at whatever step, leaves in place what served before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from alipes.errors import RepositoryError
from alipes.repository.layout import ModelFolder
from alipes.repository.repository import Listing, Repository
from alipes.server.builder import Builder, Loaded, Origin, Request
from alipes.server.composition import Absent, Composition, Member, is_ensemble
from alipes.server.failures import LoadFailed
from alipes.server.follower import Follower
from alipes.server.index import UNLOADED, Index, Status
from alipes.server.log import log
from alipes.server.memory import give_back
from alipes.server.override import Override, OverrideFolders
from alipes.server.planner import Planner
from alipes.server.reader import NoVersion, Reader
from alipes.types import ModelKey, ModelState

if TYPE_CHECKING:
    from alipes import _core

# Locks for models, by the hash of their names. Nobody holds two of them, so models may share one.
LOCKS: Final = 64


@dataclass(frozen=True, slots=True)
class Served:
    """What is published under a name, and what it was made from.

    Attributes:
        versions: The loaded versions.
        origin: The folder that they came from.
    """

    versions: dict[int, Loaded]
    origin: Origin


class Lifecycle:
    """Loads and unloads models, and keeps the index true."""

    def __init__(
        self, core: _core.Server, repository: Repository, planner: Planner, index: Index, *, retries: int = 0
    ) -> None:
        """Knows the folders of the repository and has loaded nothing.

        Args:
            core: Where versions are built and published.
            repository: Where models are.
            planner: Reads configurations.
            index: What clients are told.
            retries: Further attempts at a version that does not load.
        """
        self._core = core
        self._repository = repository
        self._reader = Reader(repository, planner)
        self._index = index
        self._cancelled = threading.Event()
        self._builder = Builder(core, planner, retries=retries, cancelled=self._cancelled)
        self._follower = Follower(index)
        self._overrides = OverrideFolders()
        self._served: dict[ModelKey, Served] = {}
        self._composition = Composition()
        self._locks = tuple(threading.Lock() for _ in range(LOCKS))
        # Those that were asked for by name, rather than as a part of an ensemble.
        self._asked: set[ModelKey] = set()
        # What failed as it was then: it is not worth another attempt until it changes, or somebody asks for it.
        self._failed: dict[ModelKey, tuple[Origin, LoadFailed]] = {}
        # Ensembles that wait until what they may be made of is loaded, with what was read of them.
        self._put_off: dict[ModelKey, Request] = {}
        self._stamp: tuple[int, ...] = ()
        self.refresh()

    def refresh(self) -> None:
        """Looks for folders that came or went since the last call, so that the index names them."""
        stamp = self._repository.stamp()
        if stamp != self._stamp and self.listing() is not None:
            self._stamp = stamp

    def listing(self) -> Listing | None:
        """The folders that there are now, which the index takes over; ``None`` if a repository cannot be read."""
        try:
            listing = self._repository.read()
        except RepositoryError as error:  # unmounted, say; what is loaded goes on serving
            log.warning("%s", error)
            return None
        self._index.take_listing(listing)
        return listing

    def names(self) -> tuple[str, ...]:
        """Every model that a repository names, duplicates included."""
        return self._repository.read().names

    def put_off(self) -> tuple[str, ...]:
        """The ensembles that `try_load` has put off and that are not loaded yet."""
        return tuple(dict.fromkeys(key.name for key in tuple(self._put_off)))

    def cancel(self) -> None:
        """No further version is built: the server is about to stop."""
        self._cancelled.set()

    def close(self) -> None:
        """Removes what lies in folders for temporary files. For after the last version has ended."""
        self._overrides.close()

    def try_load(self, model: str, *, compose: bool = True) -> bool:
        """Loads a model that no request asks for; a failure is kept in the index.

        Args:
            model: Its name.
            compose: Whether an ensemble is loaded now. Otherwise it is put off, so that the models that it is made of
                can load side by side; what was read of it is not read again when it is asked for next.

        Returns:
            True if nothing has failed.
        """
        if self._cancelled.is_set():
            return False
        self.refresh()
        try:
            folders = self._reader.find(model)
        except LoadFailed as failure:
            self._index.fail(ModelKey(model), failure.reason)
            return False
        serves = True
        for folder in folders:
            if (failed := self._ask(folder, None, retry=False, compose=compose)) is not None:
                self._index.fail(folder.key, failed.reason)
                serves = False
        return serves

    def load(self, model: str, override: Override | None = None) -> None:
        """Loads a model, or loads it again; returns once it serves.

        A folder that has not changed since its last load is not loaded again, so that an override stays in force until
        the folder changes or the model is unloaded. Of a folder that has changed, those versions are loaded again that
        the change concerns; one that differs in its instance groups alone takes these over and goes on serving.

        Args:
            model: Name of its folder. With namespaces, in every repository that has it.
            override: What takes the place of the repository's own; with one the folder is read anyway.

        Raises:
            LoadFailed: If it does not serve now what its folder says; the text is the one that clients see.
        """
        self.refresh()
        if override is not None and override.files:
            self._load_files(model, override)
            return
        failures = [
            failure for folder in self._reader.find(model) if (failure := self._ask(folder, override, retry=True))
        ]
        if failures:
            raise failures[0]

    def unload(self, model: str, *, dependents: bool = False) -> None:
        """Takes a model out of service; returns once nothing new reaches it. One that is not loaded is left alone.

        Args:
            model: Its name.
            dependents: Whether the models of an ensemble go with it, as far as nobody asked for them otherwise.
        """
        keys = [key for key in (*self._served, *self._asked) if key.name == model]
        for key in dict.fromkeys(keys or [ModelKey(model)]):
            self.unload_key(key, dependents=dependents)

    def unload_key(self, key: ModelKey, *, dependents: bool = False) -> None:
        """Takes a model out of service, as `unload`, but in one namespace alone."""
        members = self._composition.members_of(key) if dependents else ()
        self._asked.discard(key)
        self._failed.pop(key, None)
        self._put_off.pop(key, None)
        self._composition.forget(key)
        self._withdraw(key)
        self._reconsider(key.name)
        for name in members:
            member = self._present(name, key.namespace)
            if member is not None and member not in self._asked and not self._composition.ensembles_of(name):
                self.unload_key(member, dependents=True)

    def _withdraw(self, key: ModelKey) -> None:
        with self._lock_of(key):
            served = self._served.pop(key, None)
            if served is None:
                self._index.give_up(key)
            else:
                self._end_service(key, served)

    def _end_service(self, key: ModelKey, served: Served) -> None:
        self._index.set(key, dict.fromkeys(served.versions, Status(ModelState.UNLOADING)))
        self._core.publish(key.name, [], key.namespace)
        self._follower.follow(key, served.versions.values(), partial(self._clear, key, served.origin))

    def _load_files(self, model: str, override: Override) -> None:
        folder = self._overrides.make(model, override.files)
        try:
            failure = self._ask(folder, override, retry=True)
            if failure is not None:
                raise failure
        except BaseException:
            self._failed.pop(folder.key, None)
            if folder.key not in self._served:  # clients choose such names, and choose new ones without end
                self._asked.discard(folder.key)
                self._composition.forget(folder.key)
            self._overrides.remove(folder.path)
            if folder.key not in self._served:
                self._asked.discard(folder.key)
                self._forget(folder.key)
            raise

    def _ask(
        self, folder: ModelFolder, override: Override | None, *, retry: bool, compose: bool = True
    ) -> LoadFailed | None:
        """Loads a model that is asked for by name, and looks again at the ensembles that it is part of."""
        self._asked.add(folder.key)
        before = self._served.get(folder.key)
        failure = self._try_folder(folder, override, retry=retry, compose=compose)
        if self._served.get(folder.key) is not before:
            self._reconsider(folder.name)
        return failure

    def _try_folder(
        self, folder: ModelFolder, override: Override | None, *, retry: bool, compose: bool = True
    ) -> LoadFailed | None:
        read = self._put_off.pop(folder.key, None)
        if retry or override is not None:  # somebody wants it as it is now
            read = None
        # Looked at before anything is read: what changes meanwhile shows as a change.
        origin = read.origin if read is not None else Origin(folder.path, folder.stamp())
        failed = self._failed.get(folder.key)
        if failed is not None and failed[0] == origin and not retry:
            return failed[1]
        try:
            request = read or self._read_folder(folder, origin, override)
            if request is not None and is_ensemble(request.config) and not compose:
                self._put_off[folder.key] = request
            elif request is not None:
                self._load_read(request, retry=retry)
        except LoadFailed as failure:
            self._failed[folder.key] = (origin, failure)
            return failure
        self._failed.pop(folder.key, None)
        return None

    def _read_folder(self, folder: ModelFolder, origin: Origin, override: Override | None) -> Request | None:
        """What a folder says that is to be loaded; none where it serves already and nothing has changed."""
        served = self._served.get(folder.key)
        unchanged = override is None and served is not None and served.origin == origin
        if unchanged and self._composition.request(folder.key) is None:
            return None
        return self._reader.read(folder, origin, override)

    def _load_read(self, request: Request, *, retry: bool) -> None:
        if is_ensemble(request.config):
            with self._composition.lock:
                self._load_composed(request, retry=retry)
        else:
            self._take_up(request)
            self._composition.forget(request.folder.key)

    def _load_composed(self, request: Request, *, retry: bool) -> None:
        key = request.folder.key
        before = self._composition.request(key)
        try:
            self._take_up(self._compose(request, partial(self._load_member, retry=retry)))
        except BaseException:
            if key in self._served:  # what goes on serving is what it was made of before
                self._composition.restore(key, before)
            raise

    def _compose(self, request: Request, member: Member) -> Request:
        try:
            return self._composition.compose(request, member)
        except LoadFailed as failure:
            key = request.folder.key
            log.error("%s", failure.reason)
            self._withdraw_if_not_served(key)
            self._index.fail(key, failure.reason)
            raise

    def _load_member(self, name: str, namespace: str, *, retry: bool) -> Mapping[int, Loaded]:
        """A model of an ensemble, loaded as its folder says now.

        Where nobody asked for the ensemble, a model that serves is good as it is: who watches its folder sees to it.
        """
        present = self._loaded(self._present(name, namespace))
        if present and not retry:
            return present
        try:
            folders = self._repository.find(name)
        except RepositoryError as error:
            if present:  # its files came with a request
                return present
            log.error("%s", error)
            raise Absent from error
        beside = [folder for folder in folders if folder.namespace == namespace] or list(folders)
        if len(beside) > 1:
            raise Absent
        return self._load_beside(beside[0], retry=retry)

    def _load_beside(self, folder: ModelFolder, *, retry: bool) -> Mapping[int, Loaded]:
        before = self._served.get(folder.key)
        failure = self._try_folder(folder, None, retry=retry)
        served = self._served.get(folder.key)
        if served is not before:
            self._reconsider(folder.name)
        if served is not None:
            return served.versions
        if failure is None or failure.code == "INTERNAL":  # its configuration cannot be read
            raise Absent
        raise failure

    def _present_member(self, name: str, namespace: str) -> Mapping[int, Loaded]:
        """A model of an ensemble, as it serves."""
        present = self._loaded(self._present(name, namespace))
        if not present:
            raise Absent
        return present

    def _present(self, name: str, namespace: str) -> ModelKey | None:
        """The model of this name that serves, the one in the namespace first; none where there are several others."""
        keys = [key for key in tuple(self._served) if key.name == name]
        beside = [key for key in keys if key.namespace == namespace] or keys
        return beside[0] if len(beside) == 1 else None

    def _reconsider(self, model: str) -> None:
        """Looks again at the ensembles that a model is part of, now that it has come, changed or gone."""
        for key in self._composition.ensembles_of(model):
            with self._composition.lock:
                before = self._served.get(key)
                self._compose_again(key)
                if self._served.get(key) is not before:
                    self._reconsider(key.name)

    def _compose_again(self, key: ModelKey) -> None:
        request = self._composition.request(key)
        if request is None or self._composition.is_under_way(key):
            return
        try:
            self._take_up(self._compose(request, self._present_member))
        except LoadFailed:
            # It could only fail now: the models that it was made of are gone, or no longer fit.
            if key in self._served:
                self._withdraw(key)

    def _lock_of(self, key: ModelKey) -> threading.Lock:
        return self._locks[hash(key) % LOCKS]

    def _take_up(self, request: Request) -> None:
        with self._lock_of(request.folder.key):
            self._load_request(request)

    def _load_request(self, request: Request) -> None:
        folder, origin = request.folder, request.origin
        versions = self._choose(request)
        loaded = self._loaded(folder.key)
        kept = {v: one for v, one in loaded.items() if v in versions and one.source == request.source(v)}
        missing = [version for version in versions if version not in kept]
        self._mark(folder.key, missing, Status(ModelState.LOADING))
        built, failures = self._builder.build_all(request, missing)
        if not failures:
            failures = self._builder.adapt_all(request, kept)
        if failures:
            self._fail(folder.key, built, failures)
        self._publish(folder.key, Served({version: (kept | built)[version] for version in versions}, origin))

    def _loaded(self, key: ModelKey | None) -> dict[int, Loaded]:
        served = self._served.get(key) if key is not None else None
        return served.versions if served is not None else {}

    def _choose(self, request: Request) -> tuple[int, ...]:
        try:
            return self._reader.choose(request)
        except NoVersion as failure:
            key = request.folder.key
            self._withdraw_if_not_served(key)
            self._index.fail(key, failure.reason)
            raise

    def _publish(self, key: ModelKey, served: Served) -> None:
        before = self._served.get(key)
        self._core.publish(key.name, [loaded.version for loaded in served.versions.values()], key.namespace)
        self._served[key] = served
        # Versions of the last load that this one leaves out drain by themselves.
        gone = dict.fromkeys(self._index.versions(key), Status(ModelState.UNAVAILABLE, UNLOADED))
        self._index.set(key, gone | dict.fromkeys(served.versions, Status(ModelState.READY)))
        log.info("successfully loaded '%s'", key.name)
        if before is not None:
            stays = {id(loaded.version) for loaded in served.versions.values()}
            gone_versions = [one for one in before.versions.values() if id(one.version) not in stays]
            self._follower.follow(key, gone_versions, partial(self._clear, key, before.origin))

    def _fail(self, key: ModelKey, built: Iterable[int], failures: dict[int, str]) -> None:
        """Drops what was built, keeps what serves, and says why."""
        for version, reason in failures.items():
            self._mark(key, (version,), Status(ModelState.UNAVAILABLE, reason))
        self._mark(key, built, Status(ModelState.UNAVAILABLE, UNLOADED))
        self._withdraw_if_not_served(key)
        if key in self._served:
            log.error("'%s' goes on serving what was loaded before", key.name)
        reason = "".join(f"version {v} is at UNAVAILABLE state: {why};" for v, why in sorted(failures.items()))
        raise LoadFailed("INVALID_ARG", f"load failed for model '{key.name}': {reason}\n", reason=reason)

    def _mark(self, key: ModelKey, versions: Iterable[int], status: Status) -> None:
        """Records a state of versions, except of those that serve meanwhile."""
        serving = self._loaded(key)
        self._index.set(key, {version: status for version in versions if version not in serving})

    def _withdraw_if_not_served(self, key: ModelKey) -> None:
        """Makes a model that never served a known name, so that clients hear that it has no version."""
        if key not in self._served:
            self._core.publish(key.name, [], key.namespace)

    def _clear(self, key: ModelKey, origin: Origin) -> None:
        """Gives back what versions held that have ended.

        What a request brought along goes, its name too: clients may choose new ones without end.
        """
        give_back()
        if self._overrides.holds(origin.path):
            self._overrides.remove(origin.path)
            if key not in self._served:
                self._forget(key)

    def _forget(self, key: ModelKey) -> None:
        """Drops a name that is in no repository."""
        if self._index.forget(key):
            self._core.forget(key.name, key.namespace)
