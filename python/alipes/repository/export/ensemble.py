"""Ensembles: nothing to write but an empty file, everything to check."""

from __future__ import annotations

from typing import Any, ClassVar

from alipes.repository.ensemble_graph import check_graph
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.platform import Platform, conventions

__all__ = ["EnsembleExporter"]


class EnsembleExporter(Exporter):
    """Writes a version of an ensemble."""

    platform: ClassVar[Platform] = Platform.ENSEMBLE

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Nothing is what an ensemble is exported from."""
        return source is None

    def export(self, source: Any, request: ExportRequest) -> None:
        """Check the graph and leave a file, so that every store keeps the version's folder."""
        check_graph(request.config._model, request.config._proto)
        (request.folder / conventions[self.platform]).touch()
