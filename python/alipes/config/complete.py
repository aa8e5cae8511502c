"""Completes a configuration from the model file: inputs, outputs, largest batch, dynamic batching.

Nothing happens where inputs and outputs are both listed already.
Source: the completion of Triton's ONNX Runtime backend.
"""

from __future__ import annotations

from math import prod
from typing import Final

from alipes.config.datatypes import config_number, element_bytes
from alipes.config.normalize import normalize_batching
from alipes.config.schema import ModelConfig
from alipes.config.sequences import control_names, state_input_names
from alipes.errors import ConfigError
from alipes.row_proof import RowProof
from alipes.signature import Port, Side, Signature

__all__ = ["complete_from_signature", "is_complete", "rows_within", "wants_proof"]

_LEAST_ROWS: Final = 4
"""Rows that any model may have in a batch: Triton's default."""


def is_complete(config: ModelConfig) -> bool:
    """Whether inputs and outputs are both listed."""
    return bool(config.input or config.batch_input) and bool(config.output)


def rows_within(signature: Signature, rows: int, most_bytes: int) -> int:
    """The largest batch of a model without a configuration: so many rows, or fewer where rows are large.

    Args:
        signature: What the model file says; sizes that it leaves open count as 1.
        rows: The most.
        most_bytes: Bytes of the inputs of the largest batch; 0 for any number.
    """
    row_bytes = sum(prod(max(size, 1) for size in one.shape[1:]) * _element_bytes(one) for one in signature.inputs)
    if most_bytes == 0 or row_bytes == 0:
        return rows
    return min(rows, max(_LEAST_ROWS, most_bytes // row_bytes))


def _element_bytes(port: Port) -> int:
    return element_bytes(config_number(port.datatype)) or 1


def wants_proof(config: ModelConfig, default_max_batch_size: int) -> bool:
    """Whether completion would run requests together, where the file allows it, that the configuration did not ask for.

    Args:
        config: The configuration, normalised.
        default_max_batch_size: Largest batch in rows where the configuration gives none.
    """
    chosen = config.WhichOneof("scheduling_choice")
    if is_complete(config) or chosen == "dynamic_batching" or (chosen and config.max_batch_size):
        return False
    return (config.max_batch_size or default_max_batch_size) > 1


def complete_from_signature(
    config: ModelConfig,
    signature: Signature,
    default_max_batch_size: int,
    proof: RowProof | None = None,
    default_delay_us: int = 0,
) -> str:
    """Complete a configuration in place.

    Args:
        config: The configuration, normalised.
        signature: What the model file says.
        default_max_batch_size: Largest batch in rows where the file allows batches and the configuration gives none.
        proof: Whether rows of several requests may be run together; needed where `wants_proof`.
        default_delay_us: Longest wait for a fuller batch, in microseconds, where the configuration says nothing of
            batches.

    Returns:
        One line that says why requests are not run together that might be, and how to decide it; empty otherwise.

    Raises:
        ConfigError: If the configuration asks for batches and the file does not allow them.
    """
    if is_complete(config):
        return ""
    notice = _notice(config, proof) if proof is not None and not proof.holds else ""
    # Dims that are listed have no axis 0 of their own, so requests keep it even where none are run together.
    if signature.can_batch and (config.max_batch_size or config.input or config.output or not notice):
        config.max_batch_size = config.max_batch_size or default_max_batch_size
        if config.max_batch_size > 1 and config.WhichOneof("scheduling_choice") is None and not notice:
            config.dynamic_batching.SetInParent()
            config.dynamic_batching.max_queue_delay_microseconds = default_delay_us
        normalize_batching(config)
    elif config.max_batch_size > 0:
        raise ConfigError(
            f"autofill failed for model '{config.name}': model does not support batching while non-zero max_batch_size "
            "is specified",
            key="max_batch_size",
            hint="axis 0 of an input or output has a fixed size; set max_batch_size to 0",
        )
    _complete_side(config, signature, "input")
    _complete_side(config, signature, "output")
    return notice


def _notice(config: ModelConfig, proof: RowProof) -> str:
    listed = config.max_batch_size or config.input or config.output
    what = "its requests are not run together" if listed else "it is served without batching"
    return (
        f"model '{config.name}': {what}, for {proof.reason}; to decide it yourself, write max_batch_size (0 for none), "
        "dynamic_batching, and input and output with their dims into config.pbtxt"
    )


def _complete_side(config: ModelConfig, signature: Signature, side: Side) -> None:
    tensors = getattr(config, side)
    if tensors:
        return
    # What the server itself gives and keeps is no business of callers.
    states = config.sequence_batching.state
    own = [*control_names(config), *state_input_names(config)] if side == "input" else [s.output_name for s in states]
    for port in signature.side(side):
        if port.name in own:
            continue
        _fill(tensors.add(), port, batches=config.max_batch_size > 0)


def _fill(tensor: ModelConfig, port: Port, *, batches: bool) -> None:
    tensor.name = port.name
    tensor.data_type = config_number(port.datatype)
    tensor.dims.extend(port.shape[1:] if batches else port.shape)
    if not tensor.dims:
        # The format has no empty `dims`: a scalar is one element on the wire, and nothing for the model.
        tensor.dims.append(1)
        if batches:
            tensor.reshape.SetInParent()
