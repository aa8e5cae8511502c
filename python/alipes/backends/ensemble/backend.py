"""Prepares an ensemble: the models that the data plane calls, and how their tensors are joined."""

from __future__ import annotations

from typing import Any

from alipes.backends.base import Backend, Engine
from alipes.config.schema import ModelConfig

__all__ = ["EnsembleBackend"]


class EnsembleBackend(Backend):
    """An ensemble is complete as it stands, and its models have been held against it before any version is prepared."""

    def complete(self) -> None:
        """An ensemble's configuration says all there is."""

    def engine(self) -> Engine:
        """The steps, in the configuration's order."""
        scheduling = self.draft.config.ensemble_scheduling
        steps = [self._step(step) for step in scheduling.step]
        most = scheduling.max_inflight_requests
        return Engine({"kind": "ensemble", "steps": steps, "max_inflight_requests": most})

    def _step(self, step: ModelConfig) -> dict[str, Any]:
        return {
            "model": step.model_name,
            "version": step.model_version,
            "inputs": dict(step.input_map),
            "outputs": dict(step.output_map),
            "decoupled": step.model_name in self.draft.neighbours.decoupled,
        }
