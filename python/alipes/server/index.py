"""The repository index: the state of every model version, kept here and answered by the data plane.

Source: V2 protocol, model repository extension; Triton's rules for readiness.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from alipes.repository.repository import Listing
from alipes.types import IndexEntry, ModelKey, ModelState

# Reason of a version that was asked to go; the server stays ready without it.
UNLOADED = "unloaded"


@dataclass(frozen=True, slots=True)
class Status:
    """State of one version, and why."""

    state: ModelState
    reason: str = ""


class Index:
    """What is known of every model. Each change is handed on at once, in order, from `open` on."""

    def __init__(self, hand_on: Callable[[str, bool], None], *, strict_readiness: bool, advises: bool = False) -> None:
        """Keeps the index to itself until `open`.

        Args:
            hand_on: Takes the index as JSON and whether the server is ready. It must not wait.
            strict_readiness: A model that failed makes the server not ready.
            advises: Whether reasons say, behind Triton's words, what to do about a folder that is no model yet.
        """
        self._hand_on = hand_on
        self._strict = strict_readiness
        self._advises = advises
        self._open = False
        self._lock = threading.Lock()
        self._listing = Listing({}, frozenset())
        # Model -> version -> status. Version None: the model failed before any version was known.
        self._models: dict[ModelKey, dict[int | None, Status]] = {}
        # What to do about a model's folder that is no model yet, or does not load for its files.
        self._advice: dict[ModelKey, str] = {}
        # What is handed on of each model, kept until it changes: with a thousand models a change concerns one of them.
        self._texts: dict[ModelKey, str] = {}

    def open(self) -> None:
        """Begins to hand on: the models of the start are settled."""
        with self._lock:
            self._open = True
            self._changed()

    def close(self) -> None:
        """The server is no longer ready."""
        with self._lock:
            self._open = False
            self._hand_on(self._to_json(), False)

    def take_listing(self, listing: Listing) -> None:
        """Takes which folders there are now."""
        with self._lock:
            if listing != self._listing:
                self._listing = listing
                self._advice = {key: advice for key, advice in self._advice.items() if key in listing.folders}
                self._texts.clear()
                self._changed()

    def fail(self, model: ModelKey, reason: str) -> None:
        """Records that a model failed before any of its versions was known; known versions keep their state."""
        with self._lock:
            versions = self._models.setdefault(model, {})
            if not versions.keys() - {None}:
                versions[None] = Status(ModelState.UNAVAILABLE, reason)
            self._changed(model)

    def advise(self, model: ModelKey, advice: str) -> str:
        """Records what to do about a model that does not serve; empty where nothing is known. Readiness stays.

        Returns:
            What clients hear of it.
        """
        heard = advice if self._advises else ""
        with self._lock:
            if self._advice.get(model, "") != heard:
                self._advice[model] = heard
                self._changed(model)
        return heard

    def set(self, model: ModelKey, states: Mapping[int, Status]) -> None:
        """Records versions of a model as one change, so that no client sees half of a reload; no versions is no change.

        An earlier failure of the model as a whole is over.
        """
        if not states:
            return
        with self._lock:
            versions = self._models.setdefault(model, {})
            versions.pop(None, None)
            versions.update(states.items())
            if _serves(versions):
                self._advice.pop(model, None)
            self._changed(model)

    def versions(self, model: ModelKey) -> dict[int, Status]:
        """The versions of a model that were ever touched; empty for an unknown model."""
        with self._lock:
            known = self._models.get(model, {})
            return {version: status for version, status in known.items() if version is not None}

    def end_unloading(self, model: ModelKey, version: int) -> bool:
        """Records that the last request of a version has ended; false if it was loaded again meanwhile."""
        with self._lock:
            versions = self._models.get(model, {})
            if version not in versions or versions[version].state is not ModelState.UNLOADING:
                return False
            versions[version] = Status(ModelState.UNAVAILABLE, UNLOADED)
            self._changed(model)
            return True

    def give_up(self, model: ModelKey) -> None:
        """Records that a model is no longer requested: failed versions count as unloaded."""
        with self._lock:
            self._advice.pop(model, None)
            versions = self._models.get(model)
            if versions is None:
                return
            versions.pop(None, None)
            for version, status in versions.items():
                if status.state is ModelState.UNAVAILABLE:
                    versions[version] = Status(ModelState.UNAVAILABLE, UNLOADED)
            self._changed(model)

    def forget(self, model: ModelKey) -> bool:
        """Drops what is known of a model that is in no repository; false for one that is in a repository."""
        with self._lock:
            if model in self._listing.keys:
                return False
            self._models.pop(model, None)
            self._advice.pop(model, None)
            self._changed(model)
            return True

    def entries(self) -> list[IndexEntry]:
        """Every model version that is in a repository, by name and version."""
        with self._lock:
            return list(self._entries(self._listing.keys))

    def touched(self) -> list[IndexEntry]:
        """Every model version of which a load was tried, by name and version."""
        with self._lock:
            return list(
                self._entries(sorted({*self._models, *self._advised(), *map(ModelKey, self._listing.unserved)}))
            )

    def _advised(self) -> Iterable[ModelKey]:
        return [key for key, advice in self._advice.items() if advice]

    def ready(self) -> bool:
        """Whether the server can answer for all that it is to serve.

        With strict readiness every touched version is READY, or unloaded on purpose.
        """
        with self._lock:
            return self._ready()

    def _ready(self) -> bool:
        if not self._strict:
            return True
        statuses = (status for versions in self._models.values() for status in versions.values())
        return all(status.state is ModelState.READY or status.reason == UNLOADED for status in statuses)

    def _entries(self, keys: Iterable[ModelKey]) -> Iterable[IndexEntry]:
        for key in keys:
            versions = self._models.get(key)
            if (reason := self._listing.unserved.get(key.name)) and not _serves(versions):
                yield IndexEntry(key.name, "", ModelState.UNAVAILABLE, reason)
                continue
            advice = self._advice.get(key, "")
            if not versions:
                yield IndexEntry(key.name, reason=advice, advice=advice)
                continue
            for version in sorted(versions, key=lambda version: version or 0):
                status = versions[version]
                shown = "" if version is None else str(version)
                failed = status.state is ModelState.UNAVAILABLE and status.reason != UNLOADED
                yield _entry(key.name, shown, status, advice if failed else "")

    def _changed(self, model: ModelKey | None = None) -> None:
        # Under the lock on purpose: two threads must not hand their versions on in the wrong order.
        if model is not None:
            self._texts.pop(model, None)
        if self._open:
            self._hand_on(self._to_json(), self._ready())

    def _to_json(self) -> str:
        texts = (self._texts.get(key) or self._text(key) for key in self._listing.keys)
        return f"[{', '.join(texts)}]"

    def _text(self, key: ModelKey) -> str:
        """The entries of one model as JSON, without the brackets."""
        entries = [
            {"name": entry.name, "version": entry.version, "state": entry.state or "", "reason": entry.reason}
            for entry in self._entries([key])
        ]
        text = self._texts[key] = json.dumps(entries)[1:-1]
        return text


def _entry(name: str, version: str, status: Status, advice: str) -> IndexEntry:
    """The entry of a version, with what to do about it behind Triton's words."""
    reason = status.reason if advice in status.reason else f"{status.reason}; {advice}"
    return IndexEntry(name, version, status.state, reason, advice)


def _serves(versions: Mapping[int | None, Status] | None) -> bool:
    return any(status.state is ModelState.READY for status in (versions or {}).values())
