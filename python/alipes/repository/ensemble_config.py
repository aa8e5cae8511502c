"""The configuration of an ensemble: that of a model, and its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alipes.config.schema import ModelConfig as Message
from alipes.errors import ConfigError
from alipes.repository.model_config import ModelConfig

if TYPE_CHECKING:
    from alipes.repository.model import Model

__all__ = ["LATEST", "EnsembleConfig"]

LATEST = -1
"""The version of a step that is always the newest one."""


class EnsembleConfig(ModelConfig):
    """The configuration of an ensemble."""

    @property
    def steps(self) -> Any:
        """The steps, to read and to change in place."""
        return self._proto.ensemble_scheduling.step

    def add_step(self, model: Model | str, version: int | None = None) -> Message:
        """Add a step without any joins.

        Args:
            model: The model to call, or its name.
            version: Which version; None for the newest at each request.

        Returns:
            The step, to change further.

        Raises:
            ConfigError: If that version of that model is a step already.
        """
        name = model if isinstance(model, str) else model.name
        wanted = LATEST if version is None else version
        if self.find_step(name, wanted) is not None:
            called = "the newest version" if wanted == LATEST else f"version {wanted}"
            raise ConfigError(
                f"{called} of model '{name}' is a step of ensemble '{self._proto.name}' already", key="step"
            )
        step: Message = self.steps.add(model_name=name, model_version=wanted)
        return step

    def find_step(self, name: str, version: int | None = None) -> Message | None:
        """The step that calls a model: of that version, or, where None is given, the only one."""
        found = [step for step in self.steps if step.model_name == name and version in (None, step.model_version)]
        return found[0] if len(found) == 1 else None
