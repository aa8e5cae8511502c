"""Builds versions of models, and adapts loaded versions that need no rebuild."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from alipes import _core
from alipes.backends.prepare import LoadPlan
from alipes.config.changes import lasting_part, movable_part
from alipes.config.schema import ModelConfig
from alipes.disclosure import public
from alipes.errors import ConfigError, ModelLoadError
from alipes.model_load import Load
from alipes.repository.layout import ModelFolder
from alipes.repository.stamp import FolderStamp
from alipes.server.log import log
from alipes.server.memory import give_back
from alipes.server.planner import Planner
from alipes.server.steps import Steps

__all__ = ["Builder", "Loaded", "Origin", "Request"]

# The pause before a failed load is tried again; doubled each time, so that what is short of memory is not hurried.
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0


Source = tuple[Path, tuple[bytes, bytes], bytes, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a model's files were, and what they looked like."""

    path: Path
    stamp: FolderStamp


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be loaded: a model's folder as it was when its configuration was read.

    Attributes:
        folder: The folder.
        origin: What it looked like.
        config: The configuration that all versions share.
        decoupled: Of an ensemble: those of its models that may respond any number of times.
    """

    folder: ModelFolder
    origin: Origin
    config: ModelConfig
    decoupled: frozenset[str] = frozenset()

    def source(self, version: int) -> Source:
        """All that a version is built from."""
        return self.origin.path, self.origin.stamp.of_version(version), lasting_part(self.config), self.decoupled


@dataclass(frozen=True, slots=True)
class Loaded:
    """A version that was built.

    Attributes:
        version: The version. Held here, it outlives its last request.
        plan: Its specification for the data plane.
        source: All that it was built from.
        movable: What it can take over of a changed configuration, as it has it now.
    """

    version: _core.ModelVersion
    plan: LoadPlan
    source: Source
    movable: bytes


class Builder:
    """Turns plans into versions that can run."""

    def __init__(
        self, core: _core.Server, planner: Planner, steps: Steps, *, retries: int, cancelled: threading.Event
    ) -> None:
        """Builds nothing yet.

        Args:
            core: Loads what is planned.
            planner: Plans.
            steps: Runs what may take for ever.
            retries: Further attempts after one that failed.
            cancelled: Set once nothing more is to be built.
        """
        self._core = core
        self._planner = planner
        self._steps = steps
        self._retries = retries
        self._cancelled = cancelled

    def build_all(
        self, request: Request, versions: Iterable[int], load: Load
    ) -> tuple[dict[int, Loaded], dict[int, str]]:
        """Loads versions; a second failure is worth knowing too, so one does not stop the others.

        Args:
            request: The model.
            versions: Those to load.
            load: The load that they are part of; cancelled, it makes what is left fail.

        Returns:
            What was built, and why the others were not.
        """
        built: dict[int, Loaded] = {}
        failures: dict[int, str] = {}
        for version in versions:
            try:
                built[version] = self.build(request, version, load)
            except Exception as error:
                failures[version] = _reason(request.folder.name, version, error)
        return built, failures

    def adapt_all(self, request: Request, reused: dict[int, Loaded], load: Load) -> dict[int, str]:
        """Adapts loaded versions to a changed configuration, in place.

        Args:
            request: The new configuration.
            reused: The versions by number; adapted ones replace them.
            load: The load that this is part of.

        Returns:
            The reason of each version that could not be adapted, by number.
        """
        failures: dict[int, str] = {}
        for version, loaded in list(reused.items()):
            try:
                reused[version] = self.adapt(request, loaded, load)
            except Exception as error:
                failures[version] = _reason(request.folder.name, version, error)
        return failures

    def build(self, request: Request, version: int, load: Load) -> Loaded:
        """Loads one version; takes as long as its backend does.

        Raises:
            ConfigError: If the configuration is wrong or does not fit the model.
            ModelLoadError: If the model cannot be loaded, in as many attempts as there are.
        """
        pause_s = FIRST_PAUSE_S
        for left in range(self._retries, -1, -1):
            try:
                return self._attempt(request, version, load)
            except ModelLoadError as error:
                if not left or self._cancelled.is_set() or load.is_cancelled:
                    raise
                text = "'%s' version %d did not load and is tried again: %s"
                log.warning(text, request.folder.name, version, error.reason)
                load.pause(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        raise AssertionError("a last attempt returns or raises")

    def adapt(self, request: Request, loaded: Loaded, load: Load) -> Loaded:
        """Has a loaded version take over changed instance groups; it serves all the while, and nothing is reloaded.

        Raises:
            ConfigError: If the instances cannot be had.
            ModelLoadError: If a further instance cannot be loaded; the version is as it was then.
        """
        movable = movable_part(request.config)
        if movable == loaded.movable:
            return loaded
        plan = self._steps.run(load, partial(self._planner.adapt, request.folder, loaded.plan, request.config))
        self._note(plan)
        cancellation = _core.Cancellation()
        with _hiding(plan.private), load.ending(cancellation.cancel):
            self._steps.run(load, partial(self._core.adapt, loaded.version, json.dumps(plan.spec), cancellation))
        instances = len(plan.spec["instances"])
        log.info("updated '%s' version %d in place: %d instances", request.folder.name, plan.version, instances)
        return Loaded(loaded.version, plan, loaded.source, movable)

    def _attempt(self, request: Request, version: int, load: Load) -> Loaded:
        if self._cancelled.is_set():
            raise ModelLoadError("Server is stopping", code="UNAVAILABLE")
        log.info("loading: %s:%d", request.folder.name, version)
        plans = partial(self._planner.plan, request.folder, request.config, version, load=load)
        plan = self._steps.run(load, partial(plans, decoupled=request.decoupled))
        self._note(plan)
        cancellation = _core.Cancellation()
        with _hiding(plan.private), load.ending(cancellation.cancel):
            built = self._steps.run(load, partial(self._core.build, json.dumps(plan.spec), cancellation), _release)
        return Loaded(built, plan, request.source(version), movable_part(request.config))

    def _note(self, plan: LoadPlan) -> None:
        for notice in plan.notices:
            log.warning("%s", notice)


@contextmanager
def _hiding(private: Mapping[str, str]) -> Iterator[None]:
    """Keeps parts of what is said of an engine in the process."""
    try:
        yield
    except ModelLoadError as error:
        error.hiding(private)
        raise


def _release(version: _core.ModelVersion) -> None:
    """Frees a version that comes too late."""
    version.release()
    give_back()


def _reason(model: str, version: int, error: Exception) -> str:
    """Why a version did not load, as clients may see it; the log has all of it.

    What is ours to mend is still the failure of this version alone.
    """
    if isinstance(error, ConfigError | ModelLoadError):
        detail = f" ({error.cause})" if isinstance(error, ModelLoadError) and error.cause else ""
        log.error("failed to load '%s' version %d: %s%s", model, version, error.reason, detail)
        return public(error.reason, error.private if isinstance(error, ModelLoadError) else {})
    log.error("failed to load '%s' version %d: %s", model, version, error, exc_info=error)
    # The text of an error of the system ends with a path.
    text = error.strerror if isinstance(error, OSError) else str(error)
    return public(f"Internal: {type(error).__name__}: {text}")
