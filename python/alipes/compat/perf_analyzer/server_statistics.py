"""What a server says of the time that its models took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from alipes.client import Client
from alipes.client.model_counts import STAGES, ModelCounts
from alipes.compat.perf_analyzer.model import Model
from alipes.errors import AlipesError

__all__ = ["Counts", "ServerStatistics", "Snapshot"]

_LOOK_S: Final = 5.0
"""Longest wait for a server's statistics: one that hangs must not hold up the end of the run."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a model version since it was loaded, or within some time; spans are nanoseconds, in all."""

    inferences: int = 0
    executions: int = 0
    successes: int = 0
    success_ns: int = 0
    queue_ns: int = 0
    compute_input_ns: int = 0
    compute_infer_ns: int = 0
    compute_output_ns: int = 0
    cache_hits: int = 0
    cache_hit_ns: int = 0
    cache_misses: int = 0
    cache_miss_ns: int = 0

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Counts:
        """A version's statistics."""
        counts = ModelCounts.read(document)
        success, hit, miss = (counts.part(name) for name in ("success", "cache_hit", "cache_miss"))
        queue, before, inside, after = (counts.part(name).ns for name in STAGES)
        return cls(
            counts.rows,
            counts.executions,
            success.count,
            success.ns,
            queue,
            before,
            inside,
            after,
            hit.count,
            hit.ns,
            miss.count,
            miss.ns,
        )

    def __add__(self, other: Counts) -> Counts:
        """Both."""
        return Counts(*(getattr(self, name) + getattr(other, name) for name in _NAMES))

    def __sub__(self, other: Counts) -> Counts:
        """What came after the other; statistics that began anew, with a load, count from there."""
        if other.successes > self.successes:
            return self
        return Counts(*(max(getattr(self, name) - getattr(other, name), 0) for name in _NAMES))

    @property
    def compute_ns(self) -> int:
        """The three parts of the model's work."""
        return self.compute_input_ns + self.compute_infer_ns + self.compute_output_ns


_NAMES = [entry.name for entry in fields(Counts)]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counts of the measured model and of those that it calls.

    Attributes:
        own: Of the model.
        composing: Of the others, by name and version.
    """

    own: Counts = Counts()
    composing: Mapping[tuple[str, str], Counts] = field(default_factory=dict)

    def __add__(self, other: Snapshot) -> Snapshot:
        """Both."""
        keys = [*self.composing, *(key for key in other.composing if key not in self.composing)]
        none = Counts()
        return Snapshot(
            self.own + other.own,
            {key: self.composing.get(key, none) + other.composing.get(key, none) for key in keys},
        )

    def __sub__(self, other: Snapshot) -> Snapshot:
        """What came after the other."""
        none = Counts()
        return Snapshot(
            self.own - other.own,
            {key: counts - other.composing.get(key, none) for key, counts in self.composing.items()},
        )


class ServerStatistics:
    """Looks at the statistics of a server."""

    def __init__(self, client: Client, model: Model) -> None:
        """Takes the server and the model."""
        self._client = client
        self._members: Sequence[tuple[str, str]] = [(model.name, model.version), *model.composing]

    def look(self) -> Snapshot | None:
        """The counts until now; none from a server that has no statistics, or does not answer."""
        try:
            (_, own), *composing = (self._of(*member) for member in self._members)
        except (AlipesError, LookupError):
            return None
        return Snapshot(own, dict(composing))

    def _of(self, name: str, version: str) -> tuple[tuple[str, str], Counts]:
        documents = self._client.statistics(name, version, timeout_s=_LOOK_S)
        latest = max(documents, key=lambda document: int(document["version"]))
        return (name, str(latest["version"])), Counts.read(latest)
