"""Holds a configuration against the model file, in the words of Triton's ONNX Runtime backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from alipes.config.datatypes import config_name, config_number
from alipes.config.schema import ModelConfig
from alipes.config.sequences import Control, control_kinds
from alipes.errors import ConfigError
from alipes.signature import ANY, Port, Side, Signature

__all__ = ["check_signature"]

_ONNX_NAMES: Final = {"BF16": "BFLOAT16", "FP16": "FLOAT16", "FP32": "FLOAT", "FP64": "DOUBLE", "BYTES": "STRING"}
"""V2 names of datatypes that ONNX calls otherwise."""


def check_signature(config: ModelConfig, signature: Signature) -> None:
    """Check that every input of the file is configured, and that names, datatypes and shapes agree.

    Args:
        config: The configuration, complete.
        signature: What the model file says.

    Raises:
        ConfigError: With the first thing that differs.
    """
    controls = control_kinds(config)
    for control in controls:
        _check_control(config, signature, control)
    made = sum(len(made.target_name) for made in config.batch_input)
    # An optional input stands for an initial value of the file, which is no input of it.
    required = sum(not tensor.optional for tensor in config.input)
    expected = required + len(controls) + len(config.sequence_batching.state) + made
    found = len(signature.inputs)
    if expected != found:
        raise ConfigError(
            f"unable to load model '{config.name}', configuration expects {expected} inputs, model provides {found}",
            key="input",
        )
    for side in ("input", "output"):
        for tensor in getattr(config, side):
            _check_tensor(config, signature, side, tensor)


def _check_control(config: ModelConfig, signature: Signature, control: Control) -> None:
    """What the server tells of a sequence, the file has an input for: one element of that type for each row."""
    name = control.name
    port = next((port for port in signature.inputs if port.name == name), None)
    if port is None:
        raise ConfigError(
            f"configuration specified sequence control '{name}', but model does not provide that input",
            key="sequence_batching.control_input.name",
            code="INTERNAL",
        )
    called = f"unable to load model '{config.name}', sequence control '{name}'"
    dims = port.shape[1:] if config.max_batch_size > 0 else port.shape
    if dims != (1,):
        raise ConfigError(
            f"{called} in model has dims {_text(dims)} but dims [1] is expected",
            key="sequence_batching.control_input.name",
        )
    if port.datatype != control.datatype:
        raise ConfigError(
            f"{called}, the model expects data-type {_ONNX_NAMES.get(port.datatype, port.datatype)} but the model "
            f"configuration specifies data-type {config_name(config_number(control.datatype))}",
            key="sequence_batching.control_input.control",
        )


def _check_tensor(config: ModelConfig, signature: Signature, side: Side, tensor: ModelConfig) -> None:
    ports = {port.name: port for port in signature.side(side)}
    port = ports.get(tensor.name)
    if port is None:
        raise ConfigError(
            f"unexpected inference {side} '{tensor.name}', allowed {side}s are: {', '.join(sorted(ports))}",
            key=f"{side}.name",
        )
    if config_number(port.datatype) != tensor.data_type:
        raise ConfigError(
            f"unable to load model '{config.name}', configuration expects datatype {config_name(tensor.data_type)} for "
            f"{side} '{tensor.name}', model provides {config_name(config_number(port.datatype))}",
            key=f"{side}.data_type",
        )
    if _is_laid_out_anew(config, side, tensor):
        return  # the data plane knows which shape the model has to have
    dims = list(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)
    if not port.shape:
        _check_scalar(config, side, tensor, dims)
    else:
        _check_shape(config, side, port, dims)


def _is_laid_out_anew(config: ModelConfig, side: Side, tensor: ModelConfig) -> bool:
    """Whether a batch is no tensor of one row after the other."""
    if side == "input":
        return bool(tensor.allow_ragged_batch)
    return any(tensor.name in cut.target_name for cut in config.batch_output)


def _check_scalar(config: ModelConfig, side: Side, tensor: ModelConfig, dims: list[int]) -> None:
    """A scalar of the file is one element on the wire, whatever the number of dimensions."""
    if any(size != 1 for size in dims):
        raise ConfigError(
            f"unable to load model '{config.name}', scalar tensor '{tensor.name}', should only provide 1 in the model "
            f"configuration when the model doesn't support batching. Model configuration provided: {_text(dims)}.",
            key=f"{side}.dims",
        )


def _check_shape(config: ModelConfig, side: Side, port: Port, dims: list[int]) -> None:
    """The ranks are equal, and so is every size that the file fixes."""
    called = f"model '{config.name}', tensor '{port.name}'"
    batches = config.max_batch_size > 0
    if batches and not port.has_batch_dimension:
        raise ConfigError(
            f"{called}: for the model to support batching the shape should have at least 1 dimension and the first "
            f"dimension must be -1; but shape expected by the model is {_text(port.shape)}",
            key="max_batch_size",
        )
    shape = [ANY, *dims] if batches else dims
    fits = len(shape) == len(port.shape) and all(
        size in (ANY, wanted) for size, wanted in zip(port.shape, shape, strict=True)
    )
    if fits:
        return
    specified = (
        "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete "
        f"shape {_text(shape)}"
        if batches
        else f"shape {_text(shape)}"
    )
    raise ConfigError(
        f"{called}: the model expects {len(port.shape)} dimensions (shape {_text(port.shape)}) but the model "
        f"configuration specifies {len(shape)} dimensions ({specified})",
        key=f"{side}.dims",
    )


def _text(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"
