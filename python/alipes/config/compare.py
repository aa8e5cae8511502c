"""Holds a configuration against the model file, in the words of Triton's ONNX Runtime backend."""

from __future__ import annotations

from collections.abc import Sequence

from alipes.config.datatypes import config_name, config_number
from alipes.config.schema import ModelConfig
from alipes.config.sequences import control_names
from alipes.config.signature import ANY, Port, Side, Signature
from alipes.errors import ConfigError

__all__ = ["check_signature"]


def check_signature(config: ModelConfig, signature: Signature) -> None:
    """Check that every input of the file is configured, and that names, datatypes and shapes agree.

    Args:
        config: The configuration, complete.
        signature: What the model file says.

    Raises:
        ConfigError: With the first thing that differs.
    """
    made = sum(len(made.target_name) for made in config.batch_input)
    further = len(control_names(config)) + len(config.sequence_batching.state) + made
    expected, found = len(config.input) + further, len(signature.inputs)
    if expected != found:
        raise ConfigError(
            f"unable to load model '{config.name}', configuration expects {expected} inputs, model provides {found}",
            key="input",
        )
    for side in ("input", "output"):
        for tensor in getattr(config, side):
            _check_tensor(config, signature, side, tensor)


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
    if config.max_batch_size == 0 and not port.shape:
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
            f"model '{config.name}', tensor '{tensor.name}': the model expects a scalar but the model configuration "
            f"specifies shape {_text(dims)}",
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
