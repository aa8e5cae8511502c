"""What snapshotters and averagers have in common: no model file, and sequences whose state the server keeps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from alipes.backends.base import Backend, Draft, Engine
from alipes.config.datatypes import config_name, config_number
from alipes.config.gpus import GpuUse
from alipes.config.parameters import Parameter
from alipes.config.schema import ModelConfig, new_config
from alipes.config.streaming_parameters import read_streaming_parameters
from alipes.config.streaming_states import STREAM_IDLE_US, Shapes, declare_states
from alipes.config.validate.caching import cannot_cache
from alipes.errors import ConfigError

__all__ = ["StreamingBackend", "dims_of", "float_tensor", "one_tensor"]

_NOT_ITS: Final = ("oldest", "control_input", "iterative_sequence")
"""What a model with a state of its own has no use for."""


class StreamingBackend(Backend):
    """Prepares one version of a model whose state the server keeps."""

    kind: ClassVar[str]
    """The backend's name, for messages."""

    rows: ClassVar[Sequence[Parameter]]
    """Its parameters."""

    on_gpu: ClassVar[GpuUse] = GpuUse.NEVER

    def __init__(self, draft: Draft) -> None:
        """Reads the parameters."""
        super().__init__(draft)
        config = draft.config
        texts = {key: value.string_value for key, value in config.parameters.items()}
        self._parameters = read_streaming_parameters(self.rows, texts, config.name)

    def complete(self) -> None:
        """Complete the tensors that are not listed, from the parameters, and the settings of sequences."""
        config = self.draft.config
        if config.WhichOneof("scheduling_choice") is None:
            config.sequence_batching.direct.SetInParent()
            config.sequence_batching.max_sequence_idle_microseconds = STREAM_IDLE_US
        self.complete_tensors()

    def engine(self) -> Engine:
        """Hold the tensors against each other and against the parameters, and say what is computed."""
        self._check_scheduling()
        update = {"kind": self.kind, **self.update()}
        self._settle_states(self.states(update))
        return Engine(
            {
                "kind": "streaming",
                "update": update,
                "max_sequences": self.draft.options.model.streaming_max_sequences,
                "max_idle_us": self.draft.config.sequence_batching.max_sequence_idle_microseconds or STREAM_IDLE_US,
            },
            self._parameters.notices,
        )

    @abstractmethod
    def complete_tensors(self) -> None:
        """List the tensors that the configuration does not.

        Raises:
            ConfigError: If a parameter is missing that this needs.
        """

    @abstractmethod
    def update(self) -> dict[str, Any]:
        """The specification of an update for the data plane, without its kind.

        Raises:
            ConfigError: If tensors and parameters contradict each other.
        """

    @abstractmethod
    def states(self, update: Mapping[str, Any]) -> Shapes:
        """What the server keeps of a sequence, by name.

        Args:
            update: What `update` returned.
        """

    def size(self, key: str, default: int | None = None) -> int:
        """A size from the parameters.

        Raises:
            ConfigError: If there is neither the parameter nor a default.
        """
        value = self._parameters.sizes.get(key, default)
        if value is None:
            raise self.error(f"needs the parameter '{key}'", f"parameters.{key}")
        return value

    def text(self, key: str) -> str:
        """A text from the parameters; empty where it is not given."""
        return self._parameters.texts.get(key, "")

    def check_sizes(self, sizes: Mapping[str, int]) -> None:
        """Checks that sizes which are declared twice agree.

        Args:
            sizes: What the tensors say, by the parameter that says the same.

        Raises:
            ConfigError: If a parameter says something else.
        """
        for key, size in sizes.items():
            configured = self._parameters.sizes.get(key, size)
            if configured != size:
                raise self.error(
                    f"has the parameter '{key}' of {configured}, but its tensors say {size}", f"parameters.{key}"
                )

    def error(self, text: str, key: str) -> ConfigError:
        """What is wrong with the model's configuration."""
        return ConfigError(f"{self.kind} '{self.draft.config.name}' {text}", key=key)

    def _settle_states(self, states: Shapes) -> None:
        """List the states where the configuration lists none; otherwise it has to list these."""
        config = self.draft.config
        batching, data_type = config.sequence_batching, config.input[0].data_type
        expected = new_config()
        declare_states(expected.sequence_batching, states, data_type)
        if batching.state:
            found = {state.input_name: _facts(state) for state in batching.state}
            wanted = {state.input_name: _facts(state) for state in expected.sequence_batching.state}
            if found != wanted or len(found) != len(batching.state):
                listed = "; ".join(wanted.values())
                raise self.error(
                    f"keeps {listed}, each from zeros; its configuration lists other states",
                    "sequence_batching.state",
                )
        elif not self.draft.options.model.strict_config:
            batching.state.extend(expected.sequence_batching.state)

    def _check_scheduling(self) -> None:
        config = self.draft.config
        if config.max_batch_size > 0:
            raise self.error(
                f"has a max_batch_size of {config.max_batch_size}, expected 0: windows of a request are the parameter "
                "'batch_size'",
                "max_batch_size",
            )
        if config.WhichOneof("scheduling_choice") not in (None, "sequence_batching"):
            raise self.error("runs by sequences: dynamic_batching does nothing for it", "dynamic_batching")
        if config.response_cache.enable:
            raise cannot_cache(config, "sequence batching scheduler")
        for field, _ in config.sequence_batching.ListFields():
            if field.name in _NOT_ITS:
                raise self.error(
                    f"keeps its own state: sequence_batching.{field.name} does nothing for it",
                    f"sequence_batching.{field.name}",
                )
        for tensor in (*config.input, *config.output):
            if tensor.HasField("reshape"):
                raise self.error(f"has a reshape of '{tensor.name}', which has one shape only", "input.reshape")


def _facts(state: ModelConfig) -> str:
    """What is fixed of a state: its names, its type, its sizes and its beginning."""
    text = f"{state.input_name} -> {state.output_name} of {config_name(state.data_type)} {list(state.dims)}"
    zeros = all(initial.WhichOneof("state_data") == "zero_data" for initial in state.initial_state)
    return text if zeros else f"{text}, which begins with a file"


def one_tensor(backend: StreamingBackend, side: str) -> ModelConfig:
    """The only input, or output.

    Raises:
        ConfigError: If there is none, or several.
    """
    tensors = getattr(backend.draft.config, side)
    if len(tensors) != 1:
        raise backend.error(f"has {len(tensors)} {side}s, expected 1", side)
    return tensors[0]


def dims_of(backend: StreamingBackend, tensor: ModelConfig, expected: str) -> list[int]:
    """The sizes of a tensor, all of them fixed: none of them may be left to a request.

    Args:
        backend: Whose tensor it is.
        tensor: The tensor.
        expected: The axes, such as `[1, channels, samples]`; more than that many are refused, and so is one axis.

    Raises:
        ConfigError: If it has other axes, or a size is not fixed.
    """
    dims = list(tensor.dims)
    if not 2 <= len(dims) <= 3 or min(dims) < 1:
        raise backend.error(f"has '{tensor.name}' with dims {dims}, expected {expected}", "input.dims")
    return dims


def float_tensor(tensors: Any, name: str, dims: Sequence[int]) -> None:
    """List a tensor of floating-point numbers."""
    tensors.add(name=name, data_type=config_number("FP32"), dims=dims)
