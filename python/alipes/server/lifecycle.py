"""The life of each model: read its folder, plan, build every version, publish them at once, index; and unload.

Jobs of one model run one after the other (see `loader`), so what is kept of a model needs no lock of its own. A load
that fails, at whatever step, leaves in place what served before.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from alipes.config.schema import ModelConfig
from alipes.errors import AlipesError, ConfigError, ModelLoadError, RepositoryError
from alipes.repository.layout import ModelFolder
from alipes.repository.repository import Repository
from alipes.repository.versions import choose_versions, missing_versions, policy_of
from alipes.server.index import UNLOADED, Index, Status
from alipes.server.log import log
from alipes.server.planner import Planner
from alipes.types import ModelState

if TYPE_CHECKING:
    from alipes import _core

# The longest wait for the requests of an unloaded version before asking again.
DRAIN_STEP_S = 60.0


class LoadFailed(AlipesError):
    """A load or unload request cannot be granted.

    Attributes:
        code: Triton's name of the status, such as ``INVALID_ARG``.
        reason: What is wrong, without the words that Triton puts around it.
    """

    def __init__(self, code: str, message: str, *, reason: str | None = None) -> None:
        """Takes what the client is answered; ``reason`` defaults to the whole message."""
        super().__init__(message)
        self.code = code
        self.reason = reason if reason is not None else message


def poll_failed(model: str, reason: str) -> LoadFailed:
    """The failure of a model whose folder or configuration cannot be read. Clients get no detail, the log does."""
    return LoadFailed("INTERNAL", f"failed to load '{model}', failed to poll from model repository", reason=reason)


@dataclass(frozen=True, slots=True)
class Served:
    """What is published under a name, and what it was made from.

    Attributes:
        versions: The loaded versions. Held here, they outlive their last request.
        origin: Where the files were, and when they last changed.
    """

    versions: dict[int, _core.ModelVersion]
    origin: tuple[Path, int]


class Lifecycle:
    """Loads and unloads models, and keeps the index true."""

    def __init__(self, core: _core.Server, repository: Repository, planner: Planner, index: Index) -> None:
        """Knows the folders of the repository and has loaded nothing."""
        self._core = core
        self._repository = repository
        self._planner = planner
        self._index = index
        self._served: dict[str, Served] = {}
        self._stamp: tuple[int, ...] = ()
        self._cancelled = threading.Event()
        self.refresh()

    def refresh(self) -> None:
        """Looks for folders that came or went since the last call, so that the index names them."""
        stamp = self._repository.stamp()
        if stamp == self._stamp:
            return
        try:
            self._index.take_listing(self._repository.read())
            self._stamp = stamp
        except RepositoryError as error:  # unmounted, say; what is loaded goes on serving
            log.warning("%s", error)

    def names(self) -> tuple[str, ...]:
        """Every model that a repository names, duplicates included."""
        return self._repository.read().names

    def cancel(self) -> None:
        """No further version is built: the server is about to stop."""
        self._cancelled.set()

    def load_at_start(self, model: str) -> bool:
        """Loads a model that the start asks for; a failure is kept in the index. True if it serves."""
        try:
            self.load(model)
        except LoadFailed as failure:
            self._index.fail(model, failure.reason)
            return False
        return True

    def load(self, model: str, override: str | None = None) -> None:
        """Loads a model, or loads it again; returns once it serves.

        A folder that has not changed since its last load is not loaded again, so that an override stays in force until
        the folder changes or the model is unloaded.

        Args:
            model: Name of its folder.
            override: Configuration as JSON, in place of the folder's own; with one the model is loaded anyway.

        Raises:
            LoadFailed: If it does not serve now what its folder says; the text is the one that clients see.
        """
        self.refresh()
        folder, config = self._poll(model, override)
        origin = (folder.path, folder.modified_ns())
        served = self._served.get(model)
        if override is None and served is not None and served.origin == origin:
            return
        versions = self._choose(folder, config)
        built, failures = self._build(folder, config, versions)
        if failures:
            self._fail(model, built, failures)
        self._publish(model, Served(built, origin))

    def unload(self, model: str) -> None:
        """Takes a model out of service; returns once nothing new reaches it. One that is not loaded is left alone."""
        served = self._served.pop(model, None)
        if served is None:
            self._index.give_up(model)
            return
        self._index.set(model, dict.fromkeys(served.versions, Status(ModelState.UNLOADING)))
        self._core.publish(model, [])
        for version in served.versions.values():
            self._finish_unload(version)

    def _poll(self, model: str, override: str | None) -> tuple[ModelFolder, ModelConfig]:
        try:
            folder = self._repository.find(model)
            return folder, self._planner.poll(folder, override)
        except RepositoryError as error:
            log.error("%s", error)
            raise poll_failed(model, str(error)) from error
        except ConfigError as error:
            # A file has a place and a hint to show; an override is the client's own text.
            reason = str(error) if override is not None else error.explain()
            log.error("Poll failed for model directory '%s': %s", model, reason)
            raise poll_failed(model, reason) from error

    def _choose(self, folder: ModelFolder, config: ModelConfig) -> tuple[int, ...]:
        try:
            directories = folder.scan_versions()
        except RepositoryError as error:
            log.error("%s", error)
            raise poll_failed(folder.name, str(error)) from error
        for sentence in directories.ignored:
            log.warning("%s", sentence)
        policy = policy_of(config)
        for version in missing_versions(policy, directories.versions):
            log.error(
                "version %d is specified for model '%s', but the version directory is not present", version, folder.name
            )
        versions = choose_versions(policy, directories.versions)
        if not versions:
            reason = f"at least one version must be available under the version policy of model '{folder.name}'"
            self._withdraw_if_not_served(folder.name)
            self._index.fail(folder.name, reason)
            raise LoadFailed("INVALID_ARG", f"load failed for model '{folder.name}': {reason}\n", reason=reason)
        return versions

    def _build(
        self, folder: ModelFolder, config: ModelConfig, versions: tuple[int, ...]
    ) -> tuple[dict[int, _core.ModelVersion], dict[int, str]]:
        """Builds every version; a second failure is worth knowing too, so one does not stop the others."""
        built: dict[int, _core.ModelVersion] = {}
        failures: dict[int, str] = {}
        self._mark(folder.name, versions, Status(ModelState.LOADING))
        for version in versions:
            try:
                built[version] = self._build_one(folder, config, version)
            except (ConfigError, ModelLoadError) as error:
                failures[version] = error.reason
                log.error("failed to load '%s' version %d: %s", folder.name, version, error.reason)
            except Exception as error:
                # Ours to mend, and still the failure of this version alone: it must not stay LOADING for ever.
                failures[version] = f"Internal: {type(error).__name__}: {error}"
                log.exception("failed to load '%s' version %d: %s", folder.name, version, failures[version])
        return built, failures

    def _build_one(self, folder: ModelFolder, config: ModelConfig, version: int) -> _core.ModelVersion:
        if self._cancelled.is_set():
            raise ModelLoadError("Server is stopping", code="UNAVAILABLE")
        log.info("loading: %s:%d", folder.name, version)
        return self._core.build(self._planner.spec(folder, config, version))

    def _publish(self, model: str, served: Served) -> None:
        self._core.publish(model, list(served.versions.values()))
        self._served[model] = served
        # Versions of the last load that this one leaves out drain by themselves.
        gone = dict.fromkeys(self._index.versions(model), Status(ModelState.UNAVAILABLE, UNLOADED))
        self._index.set(model, gone | dict.fromkeys(served.versions, Status(ModelState.READY)))
        log.info("successfully loaded '%s'", model)

    def _fail(self, model: str, built: dict[int, _core.ModelVersion], failures: dict[int, str]) -> None:
        """Drops what was built, keeps what serves, and says why."""
        for version, reason in failures.items():
            self._mark(model, (version,), Status(ModelState.UNAVAILABLE, reason))
        self._mark(model, tuple(built), Status(ModelState.UNAVAILABLE, UNLOADED))
        self._withdraw_if_not_served(model)
        reason = "".join(f"version {v} is at UNAVAILABLE state: {why};" for v, why in sorted(failures.items()))
        raise LoadFailed("INVALID_ARG", f"load failed for model '{model}': {reason}\n", reason=reason)

    def _mark(self, model: str, versions: tuple[int, ...], status: Status) -> None:
        """Records a state of versions, except of those that serve meanwhile."""
        served = self._served.get(model)
        self._index.set(model, {v: status for v in versions if served is None or v not in served.versions})

    def _withdraw_if_not_served(self, model: str) -> None:
        """Makes a model that never served a known name, so that clients hear that it has no version."""
        if model not in self._served:
            self._core.publish(model, [])

    def _finish_unload(self, version: _core.ModelVersion) -> None:
        """Follows the last requests of a version to their end, on a thread of its own where they take time."""
        if version.drain(0.0):
            self._unloaded(version)
        else:
            threading.Thread(target=self._wait_unloaded, args=(version,), name="alipes-unload", daemon=True).start()

    def _wait_unloaded(self, version: _core.ModelVersion) -> None:
        while not version.drain(DRAIN_STEP_S):
            log.info("waiting for requests of '%s' version %d", version.name, version.version)
        self._unloaded(version)

    def _unloaded(self, version: _core.ModelVersion) -> None:
        if self._index.end_unloading(version.name, version.version):
            log.info("successfully unloaded '%s' version %d", version.name, version.version)
