"""The samples that warm a model up before it is ready."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Final

from alipes.config.datatypes import element_bytes, v2_name
from alipes.config.paths import confined, regular_size
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["check_warmup"]

_NO_ID: Final = "[request id: <id_unknown>] "
"""What Triton writes before an error of a request without id; a sample is such a request."""


def check_warmup(config: ModelConfig, folder: Path) -> None:
    """Each sample's inputs are fully described, have data, and fit the model's. Samples of batch size 0 are skipped."""
    expected = {tensor.name: tensor for tensor in config.input}
    for sample in config.model_warmup:
        if sample.batch_size == 0:
            continue
        inputs = sorted(sample.inputs.items())
        for name, tensor in inputs:
            _check_sizes(name, tensor)
        for name, tensor in inputs:
            _check_data(folder, name, tensor)
        for name, tensor in inputs:
            if name in expected:
                _check_datatype(config, name, tensor, expected[name])


def _check_sizes(name: str, sample: ModelConfig) -> None:
    if any(size < 0 for size in sample.dims):
        raise _error(f"warmup setting expects all variable-size dimensions are specified for input '{name}'", "dims")


def _check_data(folder: Path, name: str, sample: ModelConfig) -> None:
    source = sample.WhichOneof("input_data_type")
    if source is None:
        raise _error(f"{_NO_ID}warmup setting expects input '{name}' to have input_data_type set", "zero_data")
    if source == "input_data_file":
        path = confined(folder / "warmup", sample.input_data_file, "model_warmup.inputs.input_data_file")
        _check_file(path, sample)


def _check_datatype(config: ModelConfig, name: str, sample: ModelConfig, tensor: ModelConfig) -> None:
    if sample.data_type != tensor.data_type:
        raise _error(
            f"{_NO_ID}inference input '{name}' data-type is '{v2_name(sample.data_type)}', but model '{config.name}' "
            f"expects '{v2_name(tensor.data_type)}'",
            "data_type",
        )


def _check_file(path: Path, sample: ModelConfig) -> None:
    """The file holds at least one row's bytes; strings have no fixed size, so theirs are read by the request."""
    try:
        size = regular_size(path)
    except OSError as error:
        raise _error(
            f"failed to open text file for read {path}: {error.strerror}", "input_data_file", code="INTERNAL"
        ) from error
    element = element_bytes(sample.data_type)
    expected = prod(sample.dims) * element if element is not None else 0
    if size < expected:
        # The missing space is Triton's.
        raise _error(
            f"{_NO_ID}warmup setting expects {expected} bytes, but the data provided from {sample.input_data_file}"
            f"only has {size} bytes",
            "input_data_file",
        )


def _error(message: str, field: str, code: str = "INVALID_ARG") -> ConfigError:
    return ConfigError(message, key=f"model_warmup.inputs.{field}", code=code)
