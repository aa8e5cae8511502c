"""What native steps have in common: no model file, parameters that are all known, and tensors that are the step's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from alipes.backends.base import Backend, Draft, Engine
from alipes.config.datatypes import config_name, config_number, v2_name
from alipes.config.gpus import GpuUse
from alipes.config.parameters import Parameter
from alipes.config.schema import ModelConfig
from alipes.config.step_parameters import StepParameters
from alipes.config.tuning import TUNING_PREFIX
from alipes.errors import ConfigError

__all__ = ["StepBackend", "list_tensor"]


class StepBackend(Backend):
    """Prepares one version of a native step."""

    kind: ClassVar[str]
    """The backend's name, for messages."""

    rows: ClassVar[Sequence[Parameter]]
    """Its parameters."""

    forms_batches: ClassVar[bool] = True
    """Whether batches are formed where the configuration does not say it; not where a row takes as long by itself."""

    on_gpu: ClassVar[GpuUse] = GpuUse.NEVER

    def __init__(self, draft: Draft) -> None:
        """Takes the parameters, but for those of a model that tunes itself, which are no step's own."""
        super().__init__(draft)
        config = draft.config
        own = {key: value for key, value in config.parameters.items() if not key.startswith(TUNING_PREFIX)}
        texts = {key: value.string_value for key, value in own.items()}
        self.parameters = StepParameters.read(self.rows, texts, config.name, self.kind)

    def complete(self) -> None:
        """List the tensors that the configuration does not."""
        config = self.draft.config
        self.complete_tensors()
        if self.forms_batches and config.max_batch_size > 0 and config.WhichOneof("scheduling_choice") is None:
            config.dynamic_batching.preferred_batch_size.append(config.max_batch_size)

    def engine(self) -> Engine:
        """Hold the tensors against the step, and say what is computed."""
        config = self.draft.config
        if config.HasField("sequence_batching"):
            raise self.error("keeps no state: sequence_batching does nothing for it", "sequence_batching")
        if config.batch_input or config.batch_output:
            raise self.error("takes its own inputs alone", "batch_input" if config.batch_input else "batch_output")
        for side in ("input", "output"):
            for tensor in getattr(config, side):
                if tensor.HasField("reshape"):
                    raise self.error(f"has a reshape of '{tensor.name}'; list its dims as they are", f"{side}.reshape")
                if side == "input" and (tensor.allow_ragged_batch or tensor.optional):
                    raise self.error(f"needs '{tensor.name}', in one shape for a batch", "input")
        return Engine({"kind": "native", "step": {"kind": self.kind, **self.step()}})

    @abstractmethod
    def complete_tensors(self) -> None:
        """List the tensors that the configuration does not.

        Raises:
            ConfigError: If a parameter is wrong.
        """

    @abstractmethod
    def step(self) -> dict[str, Any]:
        """The specification of the step for the data plane, without its kind.

        Raises:
            ConfigError: If tensors and parameters contradict each other.
        """

    def tensors(self, side: str, count: int) -> list[ModelConfig]:
        """The inputs or outputs, which have to be so many.

        Raises:
            ConfigError: If there are more or fewer.
        """
        tensors = list(getattr(self.draft.config, side))
        if len(tensors) != count:
            raise self.error(f"has {len(tensors)} {side}s, expected {count}", side)
        return tensors

    def check_tensor(self, side: str, tensor: ModelConfig, datatypes: Sequence[str], dims: Sequence[int]) -> None:
        """Checks a tensor's type and sizes.

        Args:
            side: `input` or `output`.
            tensor: The tensor.
            datatypes: The types that it may have.
            dims: The sizes that it has to have; -1 stands for any.

        Raises:
            ConfigError: If it has others.
        """
        if v2_name(tensor.data_type) not in datatypes:
            wanted = " or ".join(config_name(config_number(name)) for name in datatypes)
            raise self.error(
                f"has '{tensor.name}' of {config_name(tensor.data_type)}, expected {wanted}", f"{side}.data_type"
            )
        found = list(tensor.dims)
        if len(found) != len(dims) or any(want not in (-1, size) for want, size in zip(dims, found, strict=True)):
            raise self.error(f"has '{tensor.name}' with dims {found}, expected {list(dims)}", f"{side}.dims")

    def error(self, text: str, key: str) -> ConfigError:
        """What is wrong with the model's configuration."""
        return ConfigError(f"{self.kind} '{self.draft.config.name}' {text}", key=key)


def list_tensor(tensors: Any, name: str, datatype: str, dims: Sequence[int]) -> None:
    """List a tensor."""
    tensors.add(name=name, data_type=config_number(datatype), dims=dims)
