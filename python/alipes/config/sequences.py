"""The specification of sequence batching for the data plane."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from alipes.config.datatypes import v2_name
from alipes.config.paths import confined
from alipes.config.schema import ModelConfig, enum_word

__all__ = [
    "Control",
    "control_kinds",
    "control_names",
    "hidden_state_outputs",
    "initial_state_file",
    "sequence_scheduling",
    "state_input_names",
]

FOLDER: Final = "initial_state"
"""The folder of a model with the files that its states begin with."""

_KINDS: Final = {
    "CONTROL_SEQUENCE_START": "start",
    "CONTROL_SEQUENCE_END": "end",
    "CONTROL_SEQUENCE_READY": "ready",
    "CONTROL_SEQUENCE_CORRID": "corrid",
}
_VALUES: Final = {"int32_false_true": "INT32", "fp32_false_true": "FP32", "bool_false_true": "BOOL"}


def sequence_scheduling(config: ModelConfig, folder: Path) -> dict[str, Any]:
    """The member `scheduling` of the specification of a model with `sequence_batching`.

    Args:
        config: The configuration: normalised, complete and checked.
        folder: The model's folder.
    """
    sequences = config.sequence_batching
    return {
        "kind": "sequence",
        "strategy": _strategy(sequences),
        "max_idle_us": sequences.max_sequence_idle_microseconds,
        "controls": [_control(tensor) for tensor in sequences.control_input if _controls(tensor)],
        "states": [_state(state, folder) for state in _states(config)],
        "iterative": sequences.iterative_sequence,
    }


class Control(NamedTuple):
    """What a tensor tells the model of a sequence.

    Attributes:
        name: The tensor.
        datatype: Its element type under its V2 name.
    """

    name: str
    datatype: str


def control_kinds(config: ModelConfig) -> list[Control]:
    """What is told of sequences, one kind after the other; a tensor of several kinds is there for each."""
    tensors = config.sequence_batching.control_input
    return [
        Control(tensor.name, _control_datatype(control))
        for kind in _KINDS
        for tensor in tensors
        for control in tensor.control
        if enum_word(control, "kind") == kind
    ]


def control_names(config: ModelConfig) -> list[str]:
    """Inputs that tell the model where a sequence stands, in the configuration's order."""
    return [tensor.name for tensor in config.sequence_batching.control_input if _controls(tensor)]


def state_input_names(config: ModelConfig) -> list[str]:
    """Inputs that receive what the server keeps, in the configuration's order."""
    return [state.input_name for state in _states(config)]


def hidden_state_outputs(config: ModelConfig) -> list[ModelConfig]:
    """States whose outputs callers do not see, in the configuration's order."""
    shown = {tensor.name for tensor in config.output}
    return [state for state in _states(config) if state.output_name not in shown]


def initial_state_file(folder: Path, name: str) -> Path:
    """The file that a state begins with.

    Raises:
        ConfigError: If the name leads out of the folder.
    """
    return confined(folder.absolute() / FOLDER, name, "sequence_batching.state.initial_state.data_file")


def _states(config: ModelConfig) -> list[ModelConfig]:
    """The states that are kept: of those that share an input, or an output, the first."""
    unique: dict[str, ModelConfig] = {}
    for state in config.sequence_batching.state:
        if all(state.input_name != other.input_name for other in unique.values()):
            unique.setdefault(state.output_name, state)
    return list(unique.values())


def _controls(tensor: ModelConfig) -> list[ModelConfig]:
    """The kinds of a control tensor, in the order in which they are written to it: the last one stays."""
    return [control for kind in _KINDS for control in tensor.control if enum_word(control, "kind") == kind]


def _strategy(sequences: ModelConfig) -> dict[str, Any]:
    if sequences.HasField("oldest"):
        oldest = sequences.oldest
        return {
            "kind": "oldest",
            "max_candidate_sequences": max(0, oldest.max_candidate_sequences),
            "preferred_batch_sizes": list(oldest.preferred_batch_size),
            "max_queue_delay_us": oldest.max_queue_delay_microseconds,
        }
    return {
        "kind": "direct",
        "max_queue_delay_us": sequences.direct.max_queue_delay_microseconds,
        "minimum_slot_utilization": sequences.direct.minimum_slot_utilization,
    }


def _control(tensor: ModelConfig) -> dict[str, Any]:
    control = _controls(tensor)[-1]
    field = _control_values(control)
    return {
        "name": tensor.name,
        "kind": _KINDS[enum_word(control, "kind")],
        "datatype": _control_datatype(control),
        "false_true": None if field is None else [float(value) for value in getattr(control, field)],
    }


def _control_values(control: ModelConfig) -> str | None:
    """The field with the values for false and true; None for a correlation id."""
    return next((name for name in _VALUES if getattr(control, name)), None)


def _control_datatype(control: ModelConfig) -> str:
    field = _control_values(control)
    return v2_name(control.data_type) if field is None else _VALUES[field]


def _state(state: ModelConfig, folder: Path) -> dict[str, Any]:
    initial = state.initial_state[0] if state.initial_state else None
    file = "" if initial is None else initial.data_file
    return {
        "input": state.input_name,
        "output": state.output_name,
        "datatype": v2_name(state.data_type),
        "dims": list(state.dims),
        "initial_dims": [1 if size < 0 else size for size in (state.dims if initial is None else initial.dims)],
        "initial_file": str(initial_state_file(folder, file)) if file else None,
    }
