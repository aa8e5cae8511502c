"""The published versions of each model and their sources; the index records every change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alipes.model_load import SUPERSEDED
from alipes.server.builder import Loaded, Origin
from alipes.server.failures import LoadFailed, load_failed
from alipes.server.follower import Follower
from alipes.server.index import UNLOADED, Index, Status
from alipes.server.log import log
from alipes.types import ModelKey, ModelState

if TYPE_CHECKING:
    from alipes import _core

__all__ = ["EndpointModel", "Published", "Served", "ServedModel"]


@dataclass(frozen=True, slots=True)
class Served:
    """What is published under a name, and what it was made from.

    Attributes:
        versions: The loaded versions.
        origin: The folder that they came from.
    """

    versions: Mapping[int, Loaded]
    origin: Origin


@dataclass(frozen=True, slots=True)
class EndpointModel:
    """A model that plain requests to `/<name>` reach.

    Attributes:
        name: Its name.
        methods: The methods that it takes.
        is_stream: Whether a request has any number of responses.
        folder: The folder of the version that serves.
    """

    name: str
    methods: tuple[str, ...]
    is_stream: bool
    folder: Path


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that requests of the protocols reach.

    Attributes:
        name: Its name.
        spec: What the data plane has to know of the version that serves.
    """

    name: str
    spec: Mapping[str, Any]


class Published:
    """The models that serve. A change of one needs its lock; reads need none."""

    def __init__(self, core: _core.Server, index: Index, ended: Callable[[ModelKey, Origin], None]) -> None:
        """Has published nothing.

        Args:
            core: Where versions are published.
            index: The states of models that clients see.
            ended: Called when versions that came from a folder have ended, perhaps on a thread of its own.
        """
        self._core = core
        self._index = index
        self._ended = ended
        self._follower = Follower(index)
        self._served: dict[ModelKey, Served] = {}
        self.changed: Callable[[], None] = _nothing
        """Called once other models have an endpoint, or another one; set it before anything is published."""
        self.reports_all = False
        """Whether it is called when any model has changed."""
        # Held while the data plane is told, which waits for nothing: it and `_served` must not disagree.
        self._telling = threading.Lock()

    def __contains__(self, key: ModelKey) -> bool:
        """Whether a model serves."""
        return key in self._served

    def keys(self) -> tuple[ModelKey, ...]:
        """The models that serve."""
        return tuple(self._served)

    def get(self, key: ModelKey) -> Served | None:
        """What serves as a model."""
        return self._served.get(key)

    def versions(self, key: ModelKey | None) -> Mapping[int, Loaded]:
        """The versions that serve as a model; empty where none does."""
        served = self._served.get(key) if key is not None else None
        return served.versions if served is not None else {}

    def models(self) -> list[ServedModel]:
        """The models that serve, by name."""
        served = {key.name: versions for key in self.keys() if (versions := self.versions(key))}
        return [ServedModel(name, served[name][max(served[name])].plan.spec) for name in sorted(served)]

    def endpoints(self) -> list[EndpointModel]:
        """The models with an endpoint of their own, by name; not those that the protocols' requests alone reach."""
        found = {key.name: one for key in self.keys() if (one := self._endpoint(key)) is not None}
        return [found[name] for name in sorted(found)]

    def _endpoint(self, key: ModelKey) -> EndpointModel | None:
        served = self._served.get(key)
        if served is None or not served.versions:
            return None
        version = max(served.versions)
        endpoint = served.versions[version].plan.spec.get("endpoint")
        if endpoint is None or endpoint["whole"] or not endpoint["methods"]:
            return None
        return EndpointModel(
            key.name, tuple(endpoint["methods"]), endpoint["stream"], served.origin.path / str(version)
        )

    def find(self, name: str, namespace: str) -> ModelKey | None:
        """The model of this name that serves, the one in the namespace first; none where there are several others."""
        keys = [key for key in self.keys() if key.name == name]
        beside = [key for key in keys if key.namespace == namespace] or keys
        return beside[0] if len(beside) == 1 else None

    def publish(self, key: ModelKey, served: Served) -> None:
        """Has versions serve in the place of those that did, whose last requests are followed to their end."""
        had = self._endpoint(key)
        with self._telling:
            before = self._served.get(key)
            self._core.publish(key.name, [loaded.version for loaded in served.versions.values()], key.namespace)
            self._served[key] = served
            # Versions of the last load that this one leaves out drain by themselves.
            gone = dict.fromkeys(self._index.versions(key), Status(ModelState.UNAVAILABLE, UNLOADED))
            self._index.set(key, gone | dict.fromkeys(served.versions, Status(ModelState.READY)))
        log.info("successfully loaded '%s'", key.name)
        if self.reports_all or had is not None or self._endpoint(key) is not None:
            self.changed()
        if before is not None:
            stays = {id(loaded.version) for loaded in served.versions.values()}
            self._follow(key, [one for one in before.versions.values() if id(one.version) not in stays], before.origin)

    def withdraw(self, key: ModelKey) -> None:
        """Has nothing serve as a model any more; what failed of it counts as unloaded."""
        had = self._endpoint(key)
        with self._telling:
            served = self._served.pop(key, None)
            if served is None:
                self._index.give_up(key)
                return
            self._index.set(key, dict.fromkeys(served.versions, Status(ModelState.UNLOADING)))
            self._core.publish(key.name, [], key.namespace)
        if self.reports_all or had is not None:
            self.changed()
        self._follow(key, served.versions.values(), served.origin)

    def introduce(self, key: ModelKey) -> None:
        """Makes a model that never served a known name, so that clients hear that it has no version."""
        with self._telling:
            if key not in self._served:
                self._core.publish(key.name, [], key.namespace)

    def forget(self, key: ModelKey) -> None:
        """Drops the name of a model that does not serve and is in no repository."""
        with self._telling:
            if key not in self._served and self._index.forget(key):
                self._core.forget(key.name, key.namespace)

    def mark(self, key: ModelKey, versions: Iterable[int], status: Status) -> None:
        """Records a state of versions, except of those that serve meanwhile."""
        serving = self.versions(key)
        self._index.set(key, {version: status for version in versions if version not in serving})

    def refuse(self, key: ModelKey, failure: LoadFailed) -> None:
        """Records that a model cannot be taken up as it is now; what serves goes on."""
        self.introduce(key)
        self._index.fail(key, failure.reason)

    def fail(
        self, key: ModelKey, built: Iterable[int], failures: Mapping[int, str], *, superseded: bool = False
    ) -> LoadFailed:
        """Records that versions did not load, and drops those that did; what serves goes on.

        Args:
            key: The model.
            built: The versions that did.
            failures: The reason of each that did not.
            superseded: Whether that is because the model is to be unloaded.

        Returns:
            The error for the client.
        """
        for version, reason in failures.items():
            self.mark(key, (version,), Status(ModelState.UNAVAILABLE, reason))
        self.mark(key, built, Status(ModelState.UNAVAILABLE, UNLOADED))
        self.introduce(key)
        if key in self._served:
            log.error("'%s' goes on serving what was loaded before", key.name)
        if superseded:
            return load_failed(key.name, SUPERSEDED)
        reason = "".join(f"version {v} is at UNAVAILABLE state: {why};" for v, why in sorted(failures.items()))
        return load_failed(key.name, reason)

    def _follow(self, key: ModelKey, versions: Iterable[Loaded], origin: Origin) -> None:
        self._follower.follow(key, versions, partial(self._ended, key, origin))


def _nothing() -> None:
    pass
