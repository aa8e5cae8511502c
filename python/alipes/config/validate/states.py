"""The tensors that the server keeps for a sequence."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Final

from alipes.config.datatypes import INVALID, element_bytes
from alipes.config.paths import regular_size
from alipes.config.schema import ModelConfig
from alipes.config.sequences import initial_state_file
from alipes.errors import ConfigError

__all__ = ["check_states"]

_ANY: Final = -1


def check_states(config: ModelConfig, folder: Path) -> None:
    """What a state begins with fits it, and each state can be kept."""
    begun: set[str] = set()
    for state in config.sequence_batching.state:
        if len(state.initial_state) > 1:
            raise _error(
                f"initial_state field for state input '{state.input_name}' must contain exactly one or zero element. "
                f"Found '{len(state.initial_state)}' elements.",
                "initial_state",
            )
        for initial in state.initial_state:
            _check_named(state, initial)
            if state.input_name in begun:
                raise _error(f"State input name '{state.input_name}' specified more than once.", "input_name")
            begun.add(state.input_name)
            _check_sizes(state, initial)
            _check_data(state, initial, folder)
    for state in config.sequence_batching.state:
        _check_state(config, state)


def _check_state(config: ModelConfig, state: ModelConfig) -> None:
    """What Triton lets pass here, and fails at the first request: no name, no datatype, no sizes that there can be."""
    for field in ("input_name", "output_name"):
        if not getattr(state, field):
            raise _error(f"sequence batching state must specify '{field}' for {config.name}", field)
    if state.data_type == INVALID:
        raise _error(
            f"sequence batching state '{state.input_name}' must specify 'data_type' for {config.name}", "data_type"
        )
    if any(size < _ANY for size in state.dims):
        raise _error(
            f"sequence batching state '{state.input_name}' dimension must be integer >= 0, or -1 to indicate a "
            f"variable-size dimension for {config.name}",
            "dims",
        )
    names = {tensor.name for tensor in config.input}
    if state.input_name in names:
        raise _error(
            f"sequence batching state input '{state.input_name}' is an input of requests as well for {config.name}",
            "input_name",
        )


def _check_named(state: ModelConfig, initial: ModelConfig) -> None:
    name = state.input_name
    if initial.data_type != state.data_type:
        raise _error(
            f"The data type used for 'initial_state' field of state '{name}' does not match the state data type.",
            "initial_state.data_type",
        )
    if not initial.name:
        raise _error(
            f"Field 'name' must be set when using initial_state for state input '{name}'.", "initial_state.name"
        )


def _check_sizes(state: ModelConfig, initial: ModelConfig) -> None:
    name = state.input_name
    if len(initial.dims) != len(state.dims):
        raise _error(
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input "
            f"'{name}'. {len(initial.dims)} != {len(state.dims)}",
            "initial_state.dims",
        )
    for size, declared in zip(initial.dims, state.dims, strict=True):
        if size < 0:
            raise _error(
                f"'initial_state' field for state input name '{name}' contains variable dimensions.",
                "initial_state.dims",
            )
        if declared not in (_ANY, size):
            raise _error(
                f"'initial_state' dim for input name '{name}' doesn't match 'state' dim description. "
                f"{size} != {declared}",
                "initial_state.dims",
            )


def _check_data(state: ModelConfig, initial: ModelConfig, folder: Path) -> None:
    source = initial.WhichOneof("state_data")
    if source is None:
        raise _error(f"initial_state setting expects state'{state.input_name}' to have state_data set", "initial_state")
    if source != "data_file":
        return
    path = initial_state_file(folder, initial.data_file)
    try:
        size = regular_size(path)
    except OSError as error:
        raise ConfigError(
            f"failed to open text file for read {path}: {error.strerror}",
            path=path,
            key="sequence_batching.state.initial_state.data_file",
            code="INTERNAL",
        ) from error
    element = element_bytes(state.data_type)
    expected = prod(initial.dims) * element if element is not None else 0
    if size < expected:
        # The missing space is Triton's.
        raise _error(
            f"initial_state setting expects {expected} bytes, but the data provided from {initial.data_file}only has "
            f"{size} bytes.",
            "initial_state.data_file",
        )


def _error(message: str, field: str) -> ConfigError:
    return ConfigError(message, key=f"sequence_batching.state.{field}")
