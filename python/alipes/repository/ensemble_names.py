"""The names of an ensemble's tensors: those that requests see stay; those that only join models give way."""

from __future__ import annotations

import itertools

from alipes.config.schema import ModelConfig as Message
from alipes.repository.declare import Side
from alipes.repository.ensemble_config import EnsembleConfig
from alipes.repository.tensors import ExposedTensor

__all__ = ["TensorNames"]


class TensorNames:
    """The names in an ensemble's configuration, to look up and to change."""

    def __init__(self, config: EnsembleConfig) -> None:
        """Looks into the configuration at each call: it may change between."""
        self._config = config

    def declared(self, side: Side, name: str) -> Message | None:
        """The input or output of the ensemble that is called so."""
        return next((tensor for tensor in getattr(self._config, side) if tensor.name == name), None)

    def is_visible(self, name: str) -> bool:
        """Whether requests bring or get a tensor of this name."""
        return self.declared("input", name) is not None or self.declared("output", name) is not None

    def producer(self, name: str) -> tuple[Message, str] | None:
        """The step, and its output, that gives what is called so; None where nothing is computed under the name."""
        for step in self._config.steps:
            for output, key in step.output_map.items():
                if key == name:
                    return step, output
        return None

    def blocked(self, name: str) -> str | None:
        """Why no further tensor can be called so; None where the name is free, or `make_room` frees it."""
        if self.declared("input", name) is not None:
            return "an input of the ensemble has that name"
        found = self.producer(name)
        if found is None:
            return None
        step, output = found
        automatic = name == output or name.startswith(f"{step.model_name}.{output}")
        if automatic and self.declared("output", name) is None:
            return None
        return f"{step.model_name}.{output} has that name already"

    def make_room(self, name: str) -> None:
        """Free a name that is not blocked: a tensor that only joins models is called after its model as well."""
        found = self.producer(name)
        if found is not None:
            step, output = found
            self.rename(name, self._unused(f"{step.model_name}.{output}"))

    def for_join(self, tensor: ExposedTensor) -> str:
        """The name of a model's output inside the ensemble: its own, with the model's in front where that is taken."""
        return tensor.name if self._is_unused(tensor.name) else self._unused(str(tensor))

    def for_output(self, tensor: ExposedTensor, present: str | None) -> str:
        """The name of a model's output among the ensemble's: its own, unless requests see another tensor of it.

        Args:
            tensor: The output.
            present: What it is called inside the ensemble, where it is.
        """
        if present == tensor.name or self.blocked(tensor.name) is None:
            return tensor.name
        return present or self._unused(str(tensor))

    def rename(self, old: str, new: str) -> None:
        """Call a tensor otherwise, wherever a step gives or takes it."""
        for step in self._config.steps:
            for mapping in (step.input_map, step.output_map):
                for tensor in [tensor for tensor, key in mapping.items() if key == old]:
                    mapping[tensor] = new

    def _is_unused(self, name: str) -> bool:
        return self.producer(name) is None and not self.is_visible(name)

    def _unused(self, name: str) -> str:
        numbered = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(1)))
        return next(one for one in numbered if self._is_unused(one))
