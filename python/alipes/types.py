"""Values that several rooms share: what the repository index says of a model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
        state: ``None`` for a folder that nobody tried to load.
        reason: Why the version is not ready; empty when there is nothing to say.
    """

    name: str
    version: str = ""
    state: ModelState | None = None
    reason: str = ""
