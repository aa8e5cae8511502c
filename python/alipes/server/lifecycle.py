"""The life of each model: read its folder, plan, build every version, publish them at once, index; and unload.

Jobs of one model run one after the other (see `loader`); where the job of an ensemble loads the ensemble's models, the
lock of each keeps their own jobs away. A load that fails, at whatever step, leaves in place what served before.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from alipes.backends.registry import NOT_OFFERED_WORDS
from alipes.config.advice import model_advice
from alipes.errors import ModelLoadError
from alipes.model_load import Load, LoadCancelled
from alipes.repository.keyed_locks import KeyedLocks
from alipes.repository.layout import ModelFolder, holds_model
from alipes.repository.repository import Listing, Repository
from alipes.server.builder import Builder, Origin, Request
from alipes.server.composition import is_ensemble
from alipes.server.ensembles import Ensembles
from alipes.server.failures import LoadFailed, load_failed
from alipes.server.index import Index, Status
from alipes.server.job import Job
from alipes.server.loads import LoadLimits, Loads
from alipes.server.log import log
from alipes.server.memory import give_back
from alipes.server.override import Override, OverrideFolders
from alipes.server.planner import Planner
from alipes.server.published import Published, Served
from alipes.server.reader import NoVersion, Reader
from alipes.server.steps import Steps
from alipes.types import ModelKey, ModelState

if TYPE_CHECKING:
    from alipes import _core


class Lifecycle:
    """Loads and unloads models, and keeps the index true."""

    def __init__(
        self,
        core: _core.Server,
        repository: Repository,
        planner: Planner,
        index: Index,
        limits: LoadLimits | None = None,
        *,
        steps: Steps | None = None,
    ) -> None:
        """Knows the folders of the repository and has loaded nothing.

        Args:
            core: Where versions are built and published.
            repository: Where models are.
            planner: Reads configurations.
            index: The states of models that clients see.
            limits: How long and how often a model is tried; once, for as long as it takes, where left out.
            steps: Runs what may take for ever.
        """
        limits = limits or LoadLimits()
        self._repository = repository
        self._reader = Reader(repository, planner)
        self._index = index
        self._cancelled = threading.Event()
        self._steps = steps if steps is not None else Steps()
        self._builder = Builder(core, planner, self._steps, retries=limits.retries, cancelled=self._cancelled)
        self._overrides = OverrideFolders()
        self._published = Published(core, index, self._clear)
        self._locks: KeyedLocks[ModelKey] = KeyedLocks()
        self._loads = Loads(limits.timeout_s)
        self._ensembles = Ensembles(
            repository,
            self._published,
            self._locks,
            self._loads,
            load_folder=lambda folder, job: self._try_folder(folder, None, job),
            take_up=self._take_up,
        )
        # Those that were asked for by name, rather than as a part of an ensemble.
        self._requested: set[ModelKey] = set()
        # Models that failed, with their files then: no further attempt until they change, or a request names them.
        self._failed: dict[ModelKey, tuple[Origin, LoadFailed]] = {}
        # Ensembles that wait until what they may be made of is loaded, with what was read of them.
        self._put_off: dict[ModelKey, Request] = {}
        self._stamp: tuple[int, ...] = ()
        self._nameless: frozenset[str] = frozenset()
        self._unreadable: Mapping[str, str] = {}
        self.refresh()

    @property
    def published(self) -> Published:
        """What serves."""
        return self._published

    def refresh(self) -> None:
        """Looks for folders that came or went since the last call, so that the index names them.

        While a repository cannot be read each call looks again: that it can be read now shows in no stamp.
        """
        stamp = self._repository.stamp()
        if stamp != self._stamp or self._unreadable:
            self.listing()
            self._stamp = stamp

    def listing(self) -> Listing:
        """The folders that there are now, which the index takes over."""
        listing = self._repository.read()
        self._index.take_listing(listing)
        self._log_unreadable(listing.unreadable)
        for folder in sorted(listing.nameless - self._nameless):
            log.warning("folder '%s' is passed over: its name is not UTF-8, so that no request could name it", folder)
        self._nameless = listing.nameless
        return listing

    def mistakes(self) -> tuple[str, ...]:
        """One sentence for each path that was given as a repository and is probably none."""
        return self._repository.mistakes()

    def advice(self) -> tuple[str, ...]:
        """One sentence for each repository without a model: what to put into it."""
        return self._repository.advice()

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The repositories that could not be read at the last look.

        What serves from them goes on, but in mode `poll` the models of one whose folder is gone are unloaded.
        """
        return tuple(self._unreadable)

    def names(self) -> tuple[str, ...]:
        """Every model that a repository names, duplicates included."""
        return self.listing().names

    def list_stamp(self) -> tuple[int, ...]:
        """Changes when a list of models does, or one of its models has come; empty where no list is followed."""
        return self._repository.list_stamp()

    def marked(self) -> tuple[str, ...]:
        """The models that KServe's agent has put into stores, whether they are loaded or not."""
        return self._repository.marked()

    def put_off(self) -> tuple[str, ...]:
        """The ensembles that `try_load` has put off and that are not loaded yet."""
        return tuple(dict.fromkeys(key.name for key in tuple(self._put_off)))

    def fetch(self) -> None:
        """Brings stores here that lie elsewhere.

        Raises:
            RepositoryError: If one that is needed cannot be had.
        """
        self._repository.fetch()

    def cancel(self) -> None:
        """No further version is built: the server is about to stop."""
        self._cancelled.set()
        self._repository.cancel()
        self._loads.interrupt()

    def close(self) -> None:
        """Removes what lies in folders for temporary files. For after the last version has ended."""
        self._overrides.close()
        self._repository.close()

    @property
    def abandoned(self) -> int:
        """The number of threads that loads have left alone, since nothing can end what they wait for."""
        return self._steps.abandoned

    def announce(self, model: str) -> Load:
        """A request to load a model that waits for its turn: from now on `supersede` ends it."""
        return self._loads.announce(model)

    def forget(self, announced: Load) -> None:
        """Drops a request that was announced and has been answered."""
        self._loads.forget(announced)

    def supersede(self, key: ModelKey, *, every_namespace: bool = False) -> None:
        """Ends the loads of a model that were announced or have begun: it is to be unloaded.

        Args:
            key: The model.
            every_namespace: Whether the namespace does not count.
        """
        self._loads.cancel(key, every_namespace=every_namespace)

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
        with self._loads.request(model) as load:
            try:
                folders = self._find(model, load)
            except LoadFailed as failure:
                self._index.fail(ModelKey(model), failure.reason)
                return False
            serves = True
            for folder in folders:
                if self._is_blank(folder, load):
                    serves = False
                    self._pass_over(folder, load)
                elif (failed := self._ask(folder, None, Job(load, retry=False, compose=compose))) is not None:
                    serves = False
                    self._index.fail(folder.key, failed.reason)
            return serves

    def load(self, model: str, override: Override | None = None, *, announced: Load | None = None) -> None:
        """Loads a model, or loads it again; returns once it serves.

        A folder that has not changed since its last load is not loaded again, so that an override stays in force until
        the folder changes or the model is unloaded. Of a folder that has changed, those versions are loaded again that
        the change concerns; one that differs in its instance groups alone takes these over and goes on serving.

        Args:
            model: Name of its folder. With namespaces, in every repository that has it.
            override: What takes the place of the repository's own; with one the folder is read anyway.
            announced: What `announce` returned for this request; the caller forgets it.

        Raises:
            LoadFailed: If it does not serve now what its folder says; the text is the one that clients see.
        """
        if announced is None:
            with self._loads.request(model) as load:
                self.load(model, override, announced=load)
            return
        job = Job(announced, retry=True)
        if override is not None and override.files:
            self._load_files(model, override, job)
            return
        folders = self._find(model, announced)
        failures = [failure for folder in folders if (failure := self._ask(folder, override, job))]
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
        composition = self._ensembles.composition
        members = composition.members_of(key) if dependents else ()
        self._requested.discard(key)
        self._failed.pop(key, None)
        self._put_off.pop(key, None)
        with self._locks.of(key):
            composition.forget(key)
            self._published.withdraw(key)
        self._ensembles.reconsider(key.name)
        for name in members:
            member = self._published.find(name, key.namespace)
            if member is not None and member not in self._requested and not composition.ensembles_of(name):
                self.unload_key(member, dependents=True)

    def _log_unreadable(self, unreadable: Mapping[str, str]) -> None:
        """Says once of each repository that it cannot be read, and once that it can again."""
        before, self._unreadable = self._unreadable, unreadable
        for repository, reason in unreadable.items():
            if before.get(repository) != reason:
                log.error("failed to poll model repository '%s': %s", repository, reason)
        for repository in before.keys() - unreadable.keys():
            log.info("model repository '%s' can be read now", repository)

    def _find(self, model: str, load: Load) -> tuple[ModelFolder, ...]:
        """The folders of a model, and the index with what else has come or gone."""

        def find() -> tuple[ModelFolder, ...]:
            self.refresh()
            return self._reader.find(model)

        try:
            return self._steps.run(load, find)
        except ModelLoadError as error:
            raise _ended(model, error) from error

    def _is_blank(self, folder: ModelFolder, load: Load) -> bool:
        try:
            return self._steps.run(load, folder.is_blank)
        except ModelLoadError:  # the attempt to load it says why
            return False

    def _pass_over(self, folder: ModelFolder, load: Load) -> None:
        """Leaves a folder alone that is no model: nobody waits for it, so it takes nothing from readiness."""
        advice = self._advice(folder, load)
        mend = f": {advice}" if advice else ""
        log.warning("folder '%s' holds neither a configuration nor a version of a model%s", folder.path, mend)
        self._put_off.pop(folder.key, None)
        self._index.give_up(folder.key)
        self._index.advise(folder.key, advice)

    def _advice(self, folder: ModelFolder, load: Load, *, offered: bool = True) -> str:
        """What to do about a folder that is no model yet; empty where nothing is known."""

        def look() -> str:
            repository = folder.path.parent
            if holds_model(repository):
                return f"serve the parent of '{repository.name}': it is no repository, but the folder of one model"
            return model_advice(folder.path, folder.name, offered=offered)

        try:
            return self._steps.run(load, look)
        except ModelLoadError:
            return ""

    def _advised(self, folder: ModelFolder, failure: LoadFailed, load: Load) -> LoadFailed:
        """The failure of a folder, with what to do about it in the log, and for clients where they are told."""
        advice = failure.advice or self._advice(folder, load, offered=NOT_OFFERED_WORDS not in failure.reason)
        if advice and advice not in failure.reason:  # a configuration's error has said it
            log.error("model '%s' is not served: %s", folder.name, advice)
        return failure.advised(self._index.advise(folder.key, advice))

    def _load_files(self, model: str, override: Override, job: Job) -> None:
        folder = self._overrides.make(model, override.files)
        try:
            failure = self._ask(folder, override, job)
            if failure is not None:
                raise failure.bare()
        except BaseException:
            self._failed.pop(folder.key, None)
            if folder.key not in self._published:  # clients choose such names, and choose new ones without end
                self._requested.discard(folder.key)
                self._ensembles.composition.forget(folder.key)
            self._overrides.remove(folder.path)
            self._published.forget(folder.key)
            raise

    def _ask(self, folder: ModelFolder, override: Override | None, job: Job) -> LoadFailed | None:
        """Loads a model that is asked for by name, and looks again at the ensembles that it is part of."""
        self._requested.add(folder.key)
        before = self._published.get(folder.key)
        failure = self._try_folder(folder, override, job)
        if self._published.get(folder.key) is not before:
            self._ensembles.reconsider(folder.name)
        return failure

    def _try_folder(self, folder: ModelFolder, override: Override | None, job: Job) -> LoadFailed | None:
        read = self._put_off.pop(folder.key, None)
        if job.retry or override is not None:  # a request wants it as it is now
            read = None
        with self._loads.of(folder.key, job.load) as load:
            # Looked at before anything is read: what changes meanwhile shows as a change.
            origin = read.origin if read is not None else None
            try:
                origin = origin or self._steps.run(load, lambda: Origin(folder.path, folder.stamp()))
                failed = self._failed.get(folder.key)
                if failed is not None and failed[0] == origin and not job.retry:
                    return failed[1]
                request = read or self._steps.run(load, partial(self._read_folder, folder, origin, override))
                self._load_read(request, job, load)
            except (LoadFailed, ModelLoadError) as error:
                failure = error if isinstance(error, LoadFailed) else _ended(folder.name, error)
                failure = self._advised(folder, failure, load)
                if origin is not None and not load.is_superseded:
                    self._failed[folder.key] = (origin, failure)
                return failure
        self._failed.pop(folder.key, None)
        return None

    def _read_folder(self, folder: ModelFolder, origin: Origin, override: Override | None) -> Request | None:
        """What a folder says that is to be loaded; none where it serves already and nothing has changed.

        An ensemble is held against its models again, which may have changed, but is not read again for that.
        """
        served = self._published.get(folder.key)
        if override is None and served is not None and served.origin == origin:
            known = self._ensembles.composition.request(folder.key)
            if known is None or known.origin == origin:
                return known
        return self._reader.read(folder, origin, override)

    def _load_read(self, request: Request | None, job: Job, load: Load) -> None:
        if request is None:
            return
        key = request.folder.key
        if not is_ensemble(request.config):
            with self._locks.of(key, load):
                self._take_up(request, load)
                self._ensembles.composition.forget(key)
        elif job.compose:
            self._ensembles.load(request, job, load)
        else:
            self._put_off[key] = request

    def _take_up(self, request: Request, load: Load) -> None:
        """Builds what is missing of a model, and publishes it. Its lock is held."""
        key = request.folder.key
        versions = self._choose(request, load)
        loaded = self._published.versions(key)
        reused = {v: one for v, one in loaded.items() if v in versions and one.source == request.source(v)}
        missing = [version for version in versions if version not in reused]
        self._published.mark(key, missing, Status(ModelState.LOADING))
        built, failures = self._builder.build_all(request, missing, load)
        if not failures:
            failures = self._builder.adapt_all(request, reused, load)
        if failures:
            raise self._published.fail(key, built, failures, superseded=load.is_superseded)
        all_of_them = {version: (reused | built)[version] for version in versions}
        self._published.publish(key, Served(all_of_them, request.origin))

    def _choose(self, request: Request, load: Load) -> tuple[int, ...]:
        try:
            return self._steps.run(load, partial(self._reader.choose, request))
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


def _ended(model: str, error: ModelLoadError) -> LoadFailed:
    """The failure of a load that ended before any version was known."""
    if not (isinstance(error, LoadCancelled)):
        log.error("failed to load '%s': %s", model, error)
    else:
        log.warning("the load of '%s' was ended: %s", model, error)
    return load_failed(model, str(error))
