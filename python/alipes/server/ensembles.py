"""Loads ensembles: first their models, then what joins these; and looks again when one of the models changes.

While the models are loaded, nothing is locked but the model that is just being loaded. An ensemble is held against its
models under its own lock, and nobody who holds a model's lock waits for another one: ensembles that share models, or
stand one within the other, can be loaded side by side.

A model that changes while an ensemble is being loaded is seen in either case: the load looks at its models afterwards,
and a thread that changed a model after that look finds no load under way, and looks again itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from alipes.errors import ModelLoadError, RepositoryError
from alipes.model_load import Load, LoadCancelled
from alipes.repository.keyed_locks import KeyedLocks
from alipes.repository.layout import ModelFolder
from alipes.repository.repository import Repository
from alipes.server.builder import Loaded, Request
from alipes.server.composition import Circle, Composition, check_nesting, compose, member_names, missing
from alipes.server.failures import LoadFailed, load_failed
from alipes.server.job import Job
from alipes.server.loads import Loads
from alipes.server.log import log
from alipes.server.published import Published
from alipes.types import ModelKey

__all__ = ["Ensembles"]

LoadFolder = Callable[[ModelFolder, Job], LoadFailed | None]
"""Loads a model as its folder says now; gives what failed."""

TakeUp = Callable[[Request, Load], None]
"""Builds and publishes what is missing of a model whose lock is held; raises LoadFailed."""


class _Absent(Exception):
    """There is no model of this name, it is not unique, or its configuration cannot be read."""


class Ensembles:
    """Loads ensembles and keeps them fitting their models."""

    def __init__(
        self,
        repository: Repository,
        published: Published,
        locks: KeyedLocks[ModelKey],
        loads: Loads,
        *,
        load_folder: LoadFolder,
        take_up: TakeUp,
    ) -> None:
        """Knows no ensemble.

        Args:
            repository: Where models are.
            published: What serves.
            locks: Of every model; held by the thread that changes what serves of it.
            loads: The loads that are under way.
            load_folder: Loads a model of an ensemble.
            take_up: Loads the ensemble itself.
        """
        self.composition = Composition()
        self._repository = repository
        self._published = published
        self._locks = locks
        self._loads = loads
        self._load_folder = load_folder
        self._take_up = take_up

    def load(self, request: Request, job: Job, load: Load) -> None:
        """Loads an ensemble with its models.

        Args:
            request: The ensemble.
            job: What it is loaded for.
            load: Its load.

        Raises:
            LoadFailed: If it does not serve then as it says.
            LoadCancelled: If its load is cancelled.
        """
        key = request.folder.key
        before = self.composition.request(key)
        changed = False
        try:
            self._check_nesting(key, job)
            self.composition.record(key, request)
            self.composition.begin(key)
            try:
                with load.waiting():
                    self._load_members(request, job.members_of(key, load))
            finally:
                changed = self.composition.end(key)
            with self._locks.of(key, load):
                self._compose(request, load)
        except BaseException:
            serves = key in self._published
            if serves:  # what goes on serving is what it was made of before
                self.composition.record(key, before)
            if serves or changed:
                self._look_again(key)
            raise

    def reconsider(self, model: str, within: tuple[ModelKey, ...] = ()) -> None:
        """Looks again at the ensembles that a model is part of, now that it has come, changed or gone.

        Args:
            model: Its name.
            within: Ensembles that are looked at anyway.
        """
        changed = {model}
        for key in self.composition.above(model):
            concerned = key not in within and not changed.isdisjoint(self.composition.members_of(key))
            if concerned and self._look_again(key):
                changed.add(key.name)

    def _check_nesting(self, key: ModelKey, job: Job) -> None:
        try:
            check_nesting(key, job.within)
        except LoadFailed as failure:
            self._refuse(key, failure)
            raise

    def _load_members(self, request: Request, job: Job) -> None:
        """Every model is tried, so that all that are missing can be named."""
        key = request.folder.key
        absent: list[str] = []
        failed: list[str] = []
        for name in member_names(request.config):
            try:
                self._load_member(name, key.namespace, job)
            except Circle as circle:
                raise self._refused(key, Circle.of(key, circle.reason)) from None
            except _Absent:
                absent.append(name)
            except LoadFailed as failure:
                failed.append(self._broken(key, name, failure))
            job.load.check()
        if absent:
            raise self._refused(key, missing(key, absent))
        if failed:
            raise self._refused(key, load_failed(key.name, failed[0]))

    def _load_member(self, name: str, namespace: str, job: Job) -> None:
        """Loads a model of an ensemble as its folder says now.

        Unless the ensemble was requested, a serving model stays as it is: the watcher of its folder reloads it.
        """
        present = self._published.find(name, namespace) is not None
        if present and not job.retry:
            return
        try:
            folders = self._repository.find(name)
        except RepositoryError as error:
            if present:  # its files came with a request
                return
            log.error("%s", error)
            raise _Absent from error
        beside = [folder for folder in folders if folder.namespace == namespace] or list(folders)
        if len(beside) > 1:
            raise _Absent
        self._load_beside(beside[0], job)

    def _load_beside(self, folder: ModelFolder, job: Job) -> None:
        before = self._published.get(folder.key)
        failure = self._outcome(folder, job)
        served = self._published.get(folder.key)
        if served is not before:
            self.reconsider(folder.name, job.within)
        if served is not None:
            return
        if failure is None or failure.code == "INTERNAL":  # its configuration cannot be read
            raise _Absent
        raise failure.bare()

    def _outcome(self, folder: ModelFolder, job: Job) -> LoadFailed | None:
        """What comes of the load of a model; each is loaded once for a job."""
        if folder.key not in job.outcomes:
            failure = self._load_folder(folder, job)
            if isinstance(failure, Circle):  # depends on the ensemble that was asked first
                return failure
            job.outcomes[folder.key] = failure
        return job.outcomes[folder.key]

    def _look_again(self, key: ModelKey) -> bool:
        """Holds an ensemble against its models as they serve now; whether anything else serves then."""
        if self.composition.request(key) is None or self.composition.leave_to_load(key):
            return False
        try:
            with self._loads.of(key) as load, self._locks.of(key, load):
                return self._compose_again(key, load)
        except LoadCancelled:  # it is to be unloaded
            return False

    def _compose_again(self, key: ModelKey, load: Load) -> bool:
        request = self.composition.request(key)
        before = self._published.get(key)
        if request is None:
            return False
        try:
            self._compose(request, load)
        except (LoadFailed, ModelLoadError):
            # It could only fail now: the models that it was made of are gone, or no longer fit.
            if before is not None:
                self._published.withdraw(key)
        return self._published.get(key) is not before

    def _compose(self, request: Request, load: Load) -> None:
        """Has an ensemble serve that is made of what serves now. Its lock is held."""
        key = request.folder.key
        try:
            composed = compose(request, self._members(request))
            self.composition.check_depth(request, self._published.find)
        except LoadFailed as failure:
            self._refuse(key, failure)
            raise
        self._take_up(composed, load)
        self.composition.record(key, request)  # it may have been unloaded meanwhile, and forgotten

    def _members(self, request: Request) -> dict[str, Mapping[int, Loaded]]:
        find, namespace = self._published.find, request.folder.namespace
        return {name: self._published.versions(find(name, namespace)) for name in member_names(request.config)}

    def _broken(self, key: ModelKey, name: str, failure: LoadFailed) -> str:
        depends = f"ensemble '{key.name}' depends on '{name}' which"
        if self.composition.names_ensemble(name):
            return f"{depends} is not valid. Model '{name}' failed with error: {failure.reason}"
        return f"{depends} has no loaded version. Model '{name}' loading failed with error: {failure.reason}"

    def _refused(self, key: ModelKey, failure: LoadFailed) -> LoadFailed:
        self._refuse(key, failure)
        return failure

    def _refuse(self, key: ModelKey, failure: LoadFailed) -> None:
        log.error("%s", failure.reason)
        self._published.refuse(key, failure)
