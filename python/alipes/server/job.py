"""What a load is done for, as it goes from a request to the models of ensembles within ensembles."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from alipes.model_load import Load
from alipes.server.failures import LoadFailed
from alipes.types import ModelKey

__all__ = ["Job"]


@dataclass(frozen=True, slots=True)
class Job:
    """Whose models are loaded, and how.

    Attributes:
        load: The request, or the load of the ensemble, that the models belong to.
        retry: Whether a model is read again though it serves or has failed, as a request asks for.
        compose: Whether ensembles are loaded now; otherwise they are put off.
        within: The ensembles whose models are being loaded, the outermost first.
        outcomes: What came of the models of ensembles that were loaded already: several may share one.
    """

    load: Load
    retry: bool
    compose: bool = True
    within: tuple[ModelKey, ...] = ()
    outcomes: dict[ModelKey, LoadFailed | None] = field(default_factory=dict)

    def members_of(self, ensemble: ModelKey, load: Load) -> Self:
        """The same for the models of an ensemble, which is loaded for this job."""
        return replace(self, load=load, compose=True, within=(*self.within, ensemble))
