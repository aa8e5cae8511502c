"""The life of each model: read its folder, plan, build every version, publish them at once, index; and unload.

Jobs of one model run one after the other (see `loader`); where the job of an ensemble loads the ensemble's models, the
lock of each keeps their own jobs away. A load that fails, at whatever step, leaves in place what served before.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from alipes.errors import RepositoryError
from alipes.repository.layout import ModelFolder
from alipes.repository.repository import Listing, Repository
from alipes.server.builder import Builder, Loaded, Origin, Request
from alipes.server.composition import Absent, Composition, Member, is_ensemble
from alipes.server.failures import LoadFailed
from alipes.server.index import Index, Status
from alipes.server.log import log
from alipes.server.memory import give_back
from alipes.server.model_locks import ModelLocks
from alipes.server.override import Override, OverrideFolders
from alipes.server.planner import Planner
from alipes.server.published import Published, Served
from alipes.server.reader import NoVersion, Reader
from alipes.types import ModelKey, ModelState

if TYPE_CHECKING:
    from alipes import _core


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
            index: The states of models that clients see.
            retries: Further attempts at a version that does not load.
        """
        self._repository = repository
        self._reader = Reader(repository, planner)
        self._index = index
        self._cancelled = threading.Event()
        self._builder = Builder(core, planner, retries=retries, cancelled=self._cancelled)
        self._overrides = OverrideFolders()
        self._published = Published(core, index, self._clear)
        self._composition = Composition()
        self._locks = ModelLocks()
        # Those that were asked for by name, rather than as a part of an ensemble.
        self._requested: set[ModelKey] = set()
        # Models that failed, with their files then: no further attempt until they change, or a request names them.
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
        self._repository.close()

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
            raise failures[0].bare()

    def unload(self, model: str, *, dependents: bool = False) -> None:
        """Takes a model out of service; returns once nothing new reaches it. One that is not loaded is left alone.

        Args:
            model: Its name.
            dependents: Whether to unload the models of an ensemble, too, unless they were loaded by request.
        """
        keys = [key for key in (*self._published.keys(), *self._requested) if key.name == model]
        for key in dict.fromkeys(keys or [ModelKey(model)]):
            self.unload_key(key, dependents=dependents)

    def unload_key(self, key: ModelKey, *, dependents: bool = False) -> None:
        """Takes a model out of service, as `unload`, but in one namespace alone."""
        members = self._composition.members_of(key) if dependents else ()
        self._requested.discard(key)
        self._failed.pop(key, None)
        self._put_off.pop(key, None)
        self._composition.forget(key)
        self._withdraw(key)
        self._reconsider(key.name)
        for name in members:
            member = self._published.find(name, key.namespace)
            if member is not None and member not in self._requested and not self._composition.ensembles_of(name):
                self.unload_key(member, dependents=True)

    def _withdraw(self, key: ModelKey) -> None:
        with self._locks.of(key):
            self._published.withdraw(key)

    def _load_files(self, model: str, override: Override) -> None:
        folder = self._overrides.make(model, override.files)
        try:
            failure = self._ask(folder, override, retry=True)
            if failure is not None:
                raise failure.bare()
        except BaseException:
            self._failed.pop(folder.key, None)
            if folder.key not in self._published:  # clients choose such names, and choose new ones without end
                self._requested.discard(folder.key)
                self._composition.forget(folder.key)
            self._overrides.remove(folder.path)
            self._published.forget(folder.key)
            raise

    def _ask(
        self, folder: ModelFolder, override: Override | None, *, retry: bool, compose: bool = True
    ) -> LoadFailed | None:
        """Loads a model that is asked for by name, and looks again at the ensembles that it is part of."""
        self._requested.add(folder.key)
        before = self._published.get(folder.key)
        failure = self._try_folder(folder, override, retry=retry, compose=compose)
        if self._published.get(folder.key) is not before:
            self._reconsider(folder.name)
        return failure

    def _try_folder(
        self, folder: ModelFolder, override: Override | None, *, retry: bool, compose: bool = True
    ) -> LoadFailed | None:
        read = self._put_off.pop(folder.key, None)
        if retry or override is not None:  # a request wants it as it is now
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
            bare = failure.bare()
            self._failed[folder.key] = (origin, bare)
            return bare
        self._failed.pop(folder.key, None)
        return None

    def _read_folder(self, folder: ModelFolder, origin: Origin, override: Override | None) -> Request | None:
        """What a folder says that is to be loaded; none where it serves already and nothing has changed.

        An ensemble is held against its models again, which may have changed, but is not read again for that.
        """
        served = self._published.get(folder.key)
        if override is None and served is not None and served.origin == origin:
            known = self._composition.request(folder.key)
            if known is None or known.origin == origin:
                return known
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
            if key in self._published:  # what goes on serving is what it was made of before
                self._composition.restore(key, before)
            raise

    def _compose(self, request: Request, member: Member) -> Request:
        try:
            return self._composition.compose(request, member)
        except LoadFailed as failure:
            log.error("%s", failure.reason)
            self._published.refuse(request.folder.key, failure)
            raise

    def _load_member(self, name: str, namespace: str, *, retry: bool) -> Mapping[int, Loaded]:
        """A model of an ensemble, loaded as its folder says now.

        Unless the ensemble was requested, a serving model stays as it is: the watcher of its folder reloads it.
        """
        present = self._published.versions(self._published.find(name, namespace))
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
        before = self._published.get(folder.key)
        failure = self._try_folder(folder, None, retry=retry)
        served = self._published.get(folder.key)
        if served is not before:
            self._reconsider(folder.name)
        if served is not None:
            return served.versions
        if failure is None or failure.code == "INTERNAL":  # its configuration cannot be read
            raise Absent
        raise failure.bare()

    def _present_member(self, name: str, namespace: str) -> Mapping[int, Loaded]:
        """A model of an ensemble, as it serves."""
        present = self._published.versions(self._published.find(name, namespace))
        if not present:
            raise Absent
        return present

    def _reconsider(self, model: str) -> None:
        """Looks again at the ensembles that a model is part of, now that it has come, changed or gone."""
        for key in self._composition.ensembles_of(model):
            with self._composition.lock:
                before = self._published.get(key)
                self._compose_again(key)
                if self._published.get(key) is not before:
                    self._reconsider(key.name)

    def _compose_again(self, key: ModelKey) -> None:
        request = self._composition.request(key)
        if request is None or self._composition.is_under_way(key):
            return
        try:
            self._take_up(self._compose(request, self._present_member))
        except LoadFailed:
            # It could only fail now: the models that it was made of are gone, or no longer fit.
            if key in self._published:
                self._withdraw(key)

    def _take_up(self, request: Request) -> None:
        with self._locks.of(request.folder.key):
            self._load_request(request)

    def _load_request(self, request: Request) -> None:
        key = request.folder.key
        versions = self._choose(request)
        loaded = self._published.versions(key)
        reused = {v: one for v, one in loaded.items() if v in versions and one.source == request.source(v)}
        missing = [version for version in versions if version not in reused]
        self._published.mark(key, missing, Status(ModelState.LOADING))
        built, failures = self._builder.build_all(request, missing)
        if not failures:
            failures = self._builder.adapt_all(request, reused)
        if failures:
            raise self._published.fail(key, built, failures)
        all_of_them = {version: (reused | built)[version] for version in versions}
        self._published.publish(key, Served(all_of_them, request.origin))

    def _choose(self, request: Request) -> tuple[int, ...]:
        try:
            return self._reader.choose(request)
        except NoVersion as failure:
            self._published.refuse(request.folder.key, failure)
            raise

    def _clear(self, key: ModelKey, origin: Origin) -> None:
        """Gives back what versions held that have ended.

        What a request brought along goes, its name too: clients may choose new ones without end.
        """
        give_back()
        if self._overrides.holds(origin.path):
            self._overrides.remove(origin.path)
            self._published.forget(key)
