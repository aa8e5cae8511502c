"""Checks an ensemble against the models that it is made of: datatypes, shapes, batches, and decoupled models.

Source: Triton's texts, and the order in which Triton finds what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from alipes.config.datatypes import config_name
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["check_composing"]

_ANY: Final = -1
"""A size that requests may choose."""


@dataclass(frozen=True, slots=True)
class _Tensor:
    """The declaration of an ensemble's tensor in one of the models.

    Attributes:
        model: Its source: a model of a step, or the ensemble itself.
        data_type: Number of the element type.
        dims: Sizes without the batch dimension.
        batches: Whether there is one.
    """

    model: str
    data_type: int
    dims: tuple[int, ...]
    batches: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes with the batch dimension."""
        return (_ANY, *self.dims) if self.batches else self.dims


def check_composing(config: ModelConfig, composing: Mapping[str, ModelConfig]) -> bool:
    """Hold an ensemble against the configurations of the models that its steps name.

    Args:
        config: The ensemble's configuration; its structure is sound.
        composing: The complete configuration of each model by name.

    Returns:
        Whether a request may have any number of responses, because a model is decoupled.

    Raises:
        ConfigError: With the first thing that does not fit.
    """
    tensors = _own_tensors(config)
    for step in config.ensemble_scheduling.step:
        model = composing[step.model_name]
        if 0 < model.max_batch_size < config.max_batch_size:
            raise _error(
                f"ensemble {config.name} allows maximum batch size {config.max_batch_size}, but it contains model "
                f"{step.model_name} which only allows maximum batch size to be {model.max_batch_size}"
            )
        _check_inputs(config, step, model, tensors)
        _check_outputs(config, step, model, tensors)
    return _check_decoupled(config, composing)


def _own_tensors(config: ModelConfig) -> dict[str, _Tensor]:
    """The ensemble's inputs and outputs, with the sizes that its models see."""
    tensors: dict[str, _Tensor] = {}
    for tensor in (*config.input, *config.output):
        dims = tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims
        found = _Tensor(config.name, tensor.data_type, tuple(dims), config.max_batch_size > 0)
        tensors.setdefault(tensor.name, found)
    return tensors


def _check_inputs(config: ModelConfig, step: ModelConfig, model: ModelConfig, tensors: dict[str, _Tensor]) -> None:
    """Every input that is mapped exists and fits, and every input that must be mapped is."""
    inputs = {tensor.name for tensor in model.input}
    for name, tensor in sorted(step.input_map.items()):
        if name not in inputs:
            raise _error(
                f"in ensemble {config.name}, ensemble tensor {tensor} is mapping to non-existing input {name} in model "
                f"{step.model_name}"
            )
    for declared in model.input:
        if declared.name in step.input_map:
            _check_fits(config, step, model, declared, step.input_map[declared.name], tensors)
        elif not declared.optional:
            raise _error(
                f"in ensemble {config.name}, input {declared.name} in model {step.model_name} is not mapped to any "
                "ensemble tensors"
            )


def _check_outputs(config: ModelConfig, step: ModelConfig, model: ModelConfig, tensors: dict[str, _Tensor]) -> None:
    outputs = {tensor.name: tensor for tensor in model.output}
    for name, tensor in sorted(step.output_map.items()):
        if name not in outputs:
            raise _error(
                f"in ensemble {config.name}, ensemble tensor {tensor} is mapped from non-existing output {name} in "
                f"model {step.model_name}"
            )
    names = [tensor.name for tensor in model.output]
    for name, tensor in sorted(step.output_map.items()):
        _check_fits(config, step, model, outputs[name], tensor, tensors)
        if names.count(name) > 1:
            raise _error(
                f"in ensemble {config.name}, multiple outputs in model {step.model_name} are mapped to the same "
                f"ensemble tensor {tensor}"
            )


def _check_fits(
    config: ModelConfig,
    step: ModelConfig,
    model: ModelConfig,
    declared: ModelConfig,
    tensor: str,
    tensors: dict[str, _Tensor],
) -> None:
    """A model declares a tensor as the models before it do.

    Shapes agree with their batch dimensions, or without: a model that does not batch may take a batch as one tensor.
    """
    found = _Tensor(step.model_name, declared.data_type, tuple(declared.dims), model.max_batch_size > 0)
    known = tensors.setdefault(tensor, found)
    where = f"in ensemble {config.name}, ensemble tensor {tensor}: inconsistent"
    if known.data_type != found.data_type:
        raise _error(
            f"{where} data type: {config_name(known.data_type)} is inferred from model {known.model} while "
            f"{config_name(found.data_type)} is inferred from model {found.model}"
        )
    if not _agree(known.dims, found.dims) and not _agree(known.shape, found.shape):
        raise _error(
            f"{where} shape: {_text(known.shape)} is inferred from model {known.model} while {_text(found.shape)} is "
            f"inferred from model {found.model}"
        )


def _agree(one: Sequence[int], other: Sequence[int]) -> bool:
    return len(one) == len(other) and all(
        left == right or _ANY in (left, right) for left, right in zip(one, other, strict=True)
    )


def _check_decoupled(config: ModelConfig, composing: Mapping[str, ModelConfig]) -> bool:
    """No step takes tensors of which there may be different numbers: nothing says which of them belong together."""
    # Tensor -> the step of the decoupled model that it comes of; -1 for none.
    origin = {tensor.name: -1 for tensor in config.input}
    waiting = list(enumerate(config.ensemble_scheduling.step))
    while ready := [item for item in waiting if all(tensor in origin for tensor in item[1].input_map.values())]:
        waiting = [item for item in waiting if item not in ready]
        for number, step in ready:
            inherited = _only(config, step.model_name, (origin[tensor] for tensor in step.input_map.values()))
            decoupled = composing[step.model_name].model_transaction_policy.decoupled
            origin.update(dict.fromkeys(step.output_map.values(), number if decoupled else inherited))
    _only(config, config.name, (origin[tensor.name] for tensor in config.output))
    return any(number >= 0 for number in origin.values())


def _only(config: ModelConfig, model: str, origins: Iterable[int]) -> int:
    several = set(origins)
    if len(several) > 1:
        raise _error(
            f"in ensemble {config.name}, step of model '{model}' receives inputs originated from different decoupled "
            "models"
        )
    return several.pop() if several else -1


def _text(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _error(message: str) -> ConfigError:
    return ConfigError(message, key="ensemble_scheduling.step")
