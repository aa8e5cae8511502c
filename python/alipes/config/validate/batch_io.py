"""The tensors that a batch makes for itself: `batch_input`, and `batch_output` that takes one apart."""

from __future__ import annotations

from alipes.config.datatypes import config_name
from alipes.config.schema import ModelConfig, enum_word
from alipes.errors import ConfigError

__all__ = ["check_batch_io"]


def check_batch_io(config: ModelConfig) -> None:
    """Each has one source among the inputs, a datatype that can be filled, and targets of its own."""
    inputs = {tensor.name for tensor in config.input}
    outputs = {tensor.name for tensor in config.output}
    for made in config.batch_input:
        _check_kind(config, made, "batch input")
        if config_name(made.data_type) not in ("TYPE_INT32", "TYPE_FP32"):
            raise ConfigError(
                f"batch input data type must be TYPE_INT32 or TYPE_FP32 for {config.name}", key="batch_input.data_type"
            )
        _check_source(config, made, "batch_input", inputs)
    for made in config.batch_output:
        _check_kind(config, made, "batch output")
        _check_source(config, made, "batch_output", inputs)
        seen: set[str] = set()
        for target in made.target_name:
            if target not in outputs:
                raise ConfigError(
                    f"unknown target output name '{target}' for {config.name}", key="batch_output.target_name"
                )
            if target in seen:
                raise ConfigError(
                    f"target output name '{target}' can only be specified once for {config.name}",
                    key="batch_output.target_name",
                )
            seen.add(target)


def _check_kind(config: ModelConfig, made: ModelConfig, called: str) -> None:
    key = called.replace(" ", "_")
    if made.kind not in made.Kind.values():
        raise ConfigError(f"unknown {called} kind '' for {config.name}", key=f"{key}.kind")
    if len(made.source_input) != 1:
        raise ConfigError(
            f"{called} kind '{enum_word(made, 'kind')}' expects 1 source input, got {len(made.source_input)} "
            f"for {config.name}",
            key=f"{key}.source_input",
        )


def _check_source(config: ModelConfig, made: ModelConfig, field: str, inputs: set[str]) -> None:
    if made.source_input[0] not in inputs:
        raise ConfigError(
            f"unknown source input name '{made.source_input[0]}' for {config.name}", key=f"{field}.source_input"
        )
