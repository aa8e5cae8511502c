"""Values that several rooms share: which model is meant, and what the repository index says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class ModelKey(NamedTuple):
    """The identity of a model.

    Attributes:
        name: The model's name.
        namespace: The repository that it is in, where names are unique in a repository alone; else empty.
    """

    name: str
    namespace: str = ""


class ModelState(StrEnum):
    """State of a model version, as the repository index names it."""

    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"
    LOADING = "LOADING"
    UNLOADING = "UNLOADING"


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One line of the repository index.

    Attributes:
        name: The model.
        version: The version as text; empty for a model that has none yet.
        state: ``None`` for a folder whose load was never attempted.
        reason: Why the version is not ready; empty when there is nothing to say.
        advice: What to do about it, where that is known; it is a part of the reason, too.
    """

    name: str
    version: str = ""
    state: ModelState | None = None
    reason: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Shadow:
    """A version that gets copies of requests; its answers are compared with those that callers get.

    Attributes:
        version: The version.
        percent: Share of the requests of versions with a weight, above 0 and at most 100.
        tolerance: How far two elements may lie apart and still count as equal: in parts of their size, or as it is
            where both are smaller than one.
    """

    version: int
    percent: float = 100.0
    tolerance: float = 1e-5


@dataclass(frozen=True, slots=True)
class TrafficSplit:
    """How the requests for a model that name no version are divided among its versions.

    Attributes:
        weights: The weight of each version; empty where the highest has all of these requests.
        sticky_header: The header whose value keeps a caller on its version; `None` where there is none.
        versions: The versions that serve, lowest first.
        shadow: The version that gets copies; `None` where there is none.
    """

    weights: Mapping[int, int]
    sticky_header: str | None = None
    versions: tuple[int, ...] = ()
    shadow: Shadow | None = None
