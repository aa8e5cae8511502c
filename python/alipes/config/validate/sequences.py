"""The sequence batcher's settings: its control tensors and its strategy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from alipes.config.datatypes import config_name
from alipes.config.schema import ModelConfig
from alipes.config.validate.caching import cannot_cache
from alipes.errors import ConfigError

__all__ = ["check_sequences", "refuse_ragged_sequences"]

_FLAGS: Final = ("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY")
"""The kinds that are true or false, in the order in which they are looked for."""

_CORRELATION: Final = "CONTROL_SEQUENCE_CORRID"
_CORRELATION_TYPES: Final = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")
_SEPARATE: Final = "python"
"""The backend whose models get the tensors of each request separately."""

_VALUES: Final = ("int32_false_true", "fp32_false_true", "bool_false_true")
_EITHER: Final = "'int32_false_true', 'fp32_false_true' or 'bool_false_true'"
_SEVERAL: Final = _EITHER.replace(" or ", " and ")


def check_sequences(config: ModelConfig) -> None:
    """No cache, one tensor with sensible values for each control, and numbers of the strategy in their ranges."""
    if not config.HasField("sequence_batching"):
        return
    if config.response_cache.enable:
        raise cannot_cache(config, "sequence batching scheduler")
    sequences = config.sequence_batching
    _check_controls(config.name, sequences)
    _check_strategy(config, sequences)


def refuse_ragged_sequences(config: ModelConfig) -> None:
    """Refuse what is made of a whole batch where each sequence has its own row: it is not offered.

    A Python model gets the tensors of each request separately, so that ragged inputs make nothing of the batch.

    Raises:
        ConfigError: If a model with `sequence_batching` wants `batch_input`, `batch_output`, or ragged inputs that are
            joined.
    """
    if not config.HasField("sequence_batching"):
        return
    joined = [port.name for port in config.input if port.allow_ragged_batch and config.backend != _SEPARATE]
    ragged = f"input.allow_ragged_batch of '{joined[0]}'" if joined else ""
    wanted = ragged or ("batch_input" if config.batch_input else "batch_output" if config.batch_output else "")
    if wanted:
        raise ConfigError(
            f"model '{config.name}' has sequence_batching and {wanted}, which are not offered together: give the model "
            "dynamic_batching, or inputs of one shape",
            key="sequence_batching",
            code="UNSUPPORTED",
        )


def _check_controls(name: str, sequences: ModelConfig) -> None:
    """One kind after the other. A tensor may have several kinds, as long as it is listed once."""
    for kind in _FLAGS:
        for control in _controls_of(name, sequences, kind):
            _check_values(name, kind, control)
    for control in _controls_of(name, sequences, _CORRELATION):
        _check_correlation(name, control)


def _controls_of(name: str, sequences: ModelConfig, kind: str) -> Iterator[ModelConfig]:
    """The control of a kind, where there is one; what is listed before it is looked at before it."""
    tensors: set[str] = set()
    found = False
    for tensor in sequences.control_input:
        if not tensor.name:
            raise _error(f"sequence batching control tensor must have a name for {name}", "control_input.name")
        if tensor.name in tensors:
            raise _error(
                f"sequence batching control tensor '{tensor.name}' is specified for multiple control kinds for {name}",
                "control_input.control",
            )
        tensors.add(tensor.name)
        for control in tensor.control:
            if control.kind != control.Kind.Value(kind):
                continue
            if found:
                raise _error(f"sequence batching specifies multiple {kind} tensors for {name}", "control_input.control")
            found = True
            yield control


def _check_correlation(name: str, control: ModelConfig) -> None:
    if any(getattr(control, values) for values in _VALUES):
        raise _error(
            f"sequence batching must not specify either {_EITHER} for {_CORRELATION} for {name}",
            "control_input.control",
        )
    if config_name(control.data_type) not in _CORRELATION_TYPES:
        allowed = f"{', '.join(_CORRELATION_TYPES[:-1])} and {_CORRELATION_TYPES[-1]}"
        raise _error(
            f"unexpected data type for control {_CORRELATION} for {name}. Allowed data types are {allowed}",
            "control_input.control.data_type",
        )


def _check_values(name: str, kind: str, control: ModelConfig) -> None:
    fields = [values for values in _VALUES if getattr(control, values)]
    if not fields:
        raise _error(f"sequence batching must specify either {_EITHER} for {kind} for {name}", "control_input.control")
    if len(fields) > 1:
        raise _error(
            f"sequence batching specifies more than one from {_SEVERAL} for {kind} for {name}", "control_input.control"
        )
    if len(getattr(control, fields[0])) != 2:
        raise _error(
            f"sequence batching control '{fields[0]}' must have exactly 2 entries for {kind} for {name}",
            f"control_input.control.{fields[0]}",
        )


def _check_strategy(config: ModelConfig, sequences: ModelConfig) -> None:
    if not 0.0 <= sequences.direct.minimum_slot_utilization <= 1.0:
        raise _error(
            f"sequence batching minimum slot utilization must be in range (0.0, 1.0] for {config.name}",
            "direct.minimum_slot_utilization",
        )
    for size in sequences.oldest.preferred_batch_size:
        if size <= 0:
            raise _error(
                f"sequence batching preferred batch size must be positive for {config.name}",
                "oldest.preferred_batch_size",
            )
        if size > config.max_batch_size:
            raise _error(
                f"sequence batching preferred batch size must be <= max batch size for {config.name}",
                "oldest.preferred_batch_size",
            )


def _error(message: str, field: str) -> ConfigError:
    return ConfigError(message, key=f"sequence_batching.{field}")
