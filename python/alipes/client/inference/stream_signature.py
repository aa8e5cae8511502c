"""A model's inputs, its streams, and how far back its state goes, as a streaming client needs them.

Configurations and metadata are documents as the server's JSON has them, so that this module makes no calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from alipes.client.inference.memory import memory_of, state_of
from alipes.client.signature import Document, TensorSpec

__all__ = ["Part", "StateInput", "StreamSignature", "read_stream_signature"]

Lookup: TypeAlias = Callable[[str, int], Document]
"""Gives the configuration of a model and a version; -1 is the latest."""

_MAX_NESTING: Final = 16
"""Depth of nested ensembles that is searched: a server refuses cycles, and no ensemble nests as deep."""


@dataclass(frozen=True, slots=True)
class Part:
    """Channels of an update that go into one window.

    Attributes:
        keys: What a caller may call it: `model/input` of each step that reads the window.
        channels: Their number.
    """

    keys: tuple[str, ...]
    channels: int


@dataclass(frozen=True, slots=True)
class StateInput:
    """An input whose tensors are updates of a state that the server keeps.

    Attributes:
        tensor: The input itself.
        parts: What an update is made of, along axis 1.
        windows: Windows that an update makes: its last axis is as many strides.
    """

    tensor: TensorSpec
    parts: tuple[Part, ...]
    windows: int = 1


@dataclass(frozen=True, slots=True)
class StreamSignature:
    """The inputs and outputs of a model, as a streaming client uses them.

    Attributes:
        inputs: Plain inputs.
        states: Inputs that are streams.
        outputs: Names of the outputs.
        stateful: Whether requests belong to sequences.
        decoupled: Whether a request may have any number of responses.
        memory: Updates after which a state no longer depends on what was before; `None` where that is unknown.
    """

    inputs: tuple[TensorSpec, ...]
    states: tuple[StateInput, ...]
    outputs: tuple[str, ...]
    stateful: bool
    memory: int | None
    decoupled: bool = False

    @property
    def streams(self) -> int:
        """Number of the named parts that updates are made of."""
        return sum(len(state.parts) for state in self.states)


def read_stream_signature(metadata: Document, config: Document, lookup: Lookup, batch_size: int) -> StreamSignature:
    """The signature of a model.

    Args:
        metadata: The model's.
        config: The model's.
        lookup: Gives the configurations of an ensemble's steps.
        batch_size: The number in place of sizes that the server leaves open.
    """
    graph = _Graph(config, lookup)
    plain, states = [], []
    for document in metadata.get("inputs", ()):
        tensor = TensorSpec.read(document).sized(batch_size)
        state_model = graph.state_model_of(tensor.name)
        if state_model is None:
            plain.append(tensor)
        else:
            states.append(_state(tensor, *state_model))
    outputs = tuple(str(output["name"]) for output in metadata.get("outputs", ()))
    return StreamSignature(tuple(plain), tuple(states), outputs, graph.stateful(), graph.memory(), graph.decoupled())


def _state(tensor: TensorSpec, config: Document, readers: Mapping[str, tuple[str, ...]]) -> StateInput:
    """The parts are the outputs of the model that keeps the state, in its order, where their channels add up."""
    outputs = [(str(output["name"]), [int(size) for size in output.get("dims", ())]) for output in config["output"]]
    parts = tuple(Part(readers.get(name, ()), dims[1] if len(dims) > 2 else 1) for name, dims in outputs)
    windows = outputs[0][1][0] if outputs and outputs[0][1] else 1
    channels = tensor.shape[1] if len(tensor.shape) > 1 else 1
    if sum(part.channels for part in parts) != channels:
        parts = (Part(tuple(key for part in parts for key in part.keys), channels),)
    return StateInput(tensor, parts, windows if _splits(tensor, windows) else 1)


def _splits(tensor: TensorSpec, windows: int) -> bool:
    return windows > 0 and bool(tensor.shape) and tensor.shape[-1] % windows == 0


class _Graph:
    """The steps of an ensemble, or the one model that is none."""

    def __init__(self, config: Document, lookup: Lookup, depth: int = 0) -> None:
        self._config = config
        self._lookup = lookup
        self._depth = depth
        scheduling = config.get("ensemble_scheduling") or {}
        self.steps: list[Document] = list(scheduling.get("step", ())) if depth < _MAX_NESTING else []
        self._known: dict[tuple[str, int], Document] = {}

    def stateful(self) -> bool:
        """Whether anything in here keeps a state."""
        if not self.steps:
            return state_of(self._config)
        return any(self._inside(step).stateful() for step in self.steps)

    def decoupled(self) -> bool:
        """Whether anything in here gives as many responses as it likes."""
        policy = self._config.get("model_transaction_policy") or {}
        return bool(policy.get("decoupled")) or any(self._inside(step).decoupled() for step in self.steps)

    def state_model_of(self, tensor: str) -> tuple[Document, dict[str, tuple[str, ...]]] | None:
        """The model that keeps the state that a tensor updates, and the readers of each of its outputs.

        An ensemble's input is a stream where a step keeps a state and takes nothing else.
        """
        if not self.steps:
            inputs = self._config.get("input", ())
            return (self._config, {}) if state_of(self._config) and len(inputs) == 1 else None
        for step in self.steps:
            inputs = step.get("input_map", {})
            if len(inputs) != 1 or next(iter(inputs.values())) != tensor:
                continue
            inside = self._inside(step)
            found = inside.state_model_of(next(iter(inputs)))
            if found is not None:
                return found[0], found[1] if inside.steps else self._readers(step)
        return None

    def memory(self) -> int | None:
        """Updates that the longest path through the graph goes back; `None` where that of a step is unknown."""
        if not self.steps:
            return memory_of(self._config) if state_of(self._config) else 0
        behind: dict[str, int] = {}
        own = [self._inside(step).memory() for step in self.steps]
        if any(one is None for one in own):
            return None
        for _ in self.steps:  # each round settles at least the next step of every way
            for step, one in zip(self.steps, own, strict=True):
                before = max((behind.get(tensor, 0) for tensor in step.get("input_map", {}).values()), default=0)
                behind.update(dict.fromkeys(step.get("output_map", {}).values(), before + (one or 0)))
        return max(behind.values(), default=0)

    def _readers(self, step: Document) -> dict[str, tuple[str, ...]]:
        """For each output of a step: `model/input` of the steps that it feeds."""
        return {
            output: tuple(self._reading(tensor) or (tensor,)) for output, tensor in step.get("output_map", {}).items()
        }

    def _reading(self, tensor: str) -> Iterable[str]:
        return tuple(
            f"{step['model_name']}/{name}"
            for step in self.steps
            for name, source in step.get("input_map", {}).items()
            if source == tensor
        )

    def _inside(self, step: Document) -> _Graph:
        key = str(step["model_name"]), int(step.get("model_version", -1))
        if key not in self._known:
            self._known[key] = self._lookup(*key)
        return _Graph(self._known[key], self._lookup, self._depth + 1)
