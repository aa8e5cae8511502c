"""An ensemble as a whole, looked at when it is exported: every input fed, every step known, no circle.

What Triton checks besides is checked in its words by `alipes.config.validate`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from alipes.config.schema import ModelConfig as Message
from alipes.config.schema import copy_config
from alipes.config.validate.composing import check_composing
from alipes.errors import ConfigError, ExportError
from alipes.repository.edges import check_edge
from alipes.repository.ensemble_config import LATEST
from alipes.repository.tensors import ExposedTensor, exposed

if TYPE_CHECKING:
    from alipes.repository.ensemble import EnsembleModel
    from alipes.repository.model import Model

__all__ = ["check_graph"]

_log = logging.getLogger(__name__)


def check_graph(ensemble: EnsembleModel, config: Message) -> None:
    """Check that an ensemble can be served.

    Args:
        ensemble: Whose configuration it is.
        config: The configuration.

    Raises:
        ExportError: If it has no inputs or no outputs.
        ConfigError: With the first edge or step that is wrong.
    """
    for side in ("input", "output"):
        if not getattr(config, side):
            raise ExportError(
                f"Must specify {side} shapes: ensemble '{ensemble.name}' has no {side}s; add_{side} adds one"
            )
    models = {step.model_name: _model_of(ensemble, step) for step in config.ensemble_scheduling.step}
    sources = _sources(ensemble, config, models)
    for step in config.ensemble_scheduling.step:
        _check_step(ensemble, step, models[step.model_name], sources)
    _check_no_circle(ensemble, config)
    _warn_of_order(ensemble, config, models)
    check_composing(config, {name: copy_config(model.config._proto) for name, model in models.items()})


def _model_of(ensemble: EnsembleModel, step: Message) -> Model:
    model = ensemble.repository.models.get(step.model_name)
    if model is None:
        raise _error(ensemble, f"step '{step.model_name}' is no model of {ensemble.fs}")
    versions = model.versions
    if step.model_version not in (LATEST, *versions):
        raise _error(ensemble, f"step '{step.model_name}' is version {step.model_version}, which does not exist")
    if not versions:
        _log.warning(
            "ensemble '%s': its step '%s' has no version yet: export one before it is served", ensemble.name, model.name
        )
    return model


def _sources(ensemble: EnsembleModel, config: Message, models: Mapping[str, Model]) -> dict[str, ExposedTensor]:
    """What each tensor of the ensemble comes from."""
    sources = {tensor.name: exposed(ensemble, config, tensor) for tensor in config.input}
    for step in config.ensemble_scheduling.step:
        outputs = models[step.model_name].outputs
        for name, key in sorted(step.output_map.items()):
            if name not in outputs:
                raise _error(ensemble, f"{step.model_name}.{name} -> '{key}': the model has no output '{name}'")
            sources.setdefault(key, outputs[name])
    return sources


def _check_step(ensemble: EnsembleModel, step: Message, model: Model, sources: Mapping[str, ExposedTensor]) -> None:
    inputs = model.inputs
    for name, key in sorted(step.input_map.items()):
        if name not in inputs:
            raise _error(ensemble, f"'{key}' -> {step.model_name}.{name}: the model has no input '{name}'")
        if key not in sources:
            raise _error(ensemble, f"'{key}' -> {step.model_name}.{name}: nothing gives '{key}'")
        check_edge(ensemble.name, sources[key], inputs[name])
    for tensor in model.config.input:
        if tensor.name not in step.input_map and not tensor.optional:
            raise _error(
                ensemble,
                f"{step.model_name}.{tensor.name} has no source: feed it with pipe or add_input",
            )


def _check_no_circle(ensemble: EnsembleModel, config: Message) -> None:
    """Follow edges backwards from each step until one comes round again."""
    steps = list(config.ensemble_scheduling.step)
    giver = {key: index for index, step in enumerate(steps) for key in step.output_map.values()}
    done: set[int] = set()
    for start in range(len(steps)):
        path: list[int] = []
        _walk(ensemble, steps, giver, start, path, done)


def _walk(
    ensemble: EnsembleModel, steps: list[Message], giver: Mapping[str, int], start: int, path: list[int], done: set[int]
) -> None:
    # A stack of its own: an ensemble may be deeper than Python's.
    stack: list[tuple[int, Iterator[int]]] = []

    def enter(index: int) -> None:
        path.append(index)
        stack.append((index, iter([giver[key] for key in steps[index].input_map.values() if key in giver])))

    if start in done:
        return
    enter(start)
    while stack:
        index, before = stack[-1]
        following = next(before, None)
        if following is None:
            done.add(index)
            path.pop()
            stack.pop()
        elif following in path:
            names = [steps[one].model_name for one in reversed([*path[path.index(following) :], following])]
            raise _error(ensemble, f"{' -> '.join(names)} is a cycle: each waits for the one before it")
        elif following not in done:
            enter(following)


def _warn_of_order(ensemble: EnsembleModel, config: Message, models: Mapping[str, Model]) -> None:
    """A model that keeps state needs its requests in order; one with several instances may not give them so."""
    steps = list(config.ensemble_scheduling.step)
    giver = {key: step.model_name for step in steps for key in step.output_map.values()}
    for step in steps:
        if not models[step.model_name].config.HasField("sequence_batching"):
            continue
        for name in sorted({giver[key] for key in step.input_map.values() if key in giver}):
            before = models[name].config
            instances = sum(max(group.count, 1) * max(len(group.gpus), 1) for group in before.instance_group)
            keeps = before.HasField("sequence_batching") or before.dynamic_batching.preserve_ordering
            if instances > 1 and not keeps:
                _log.warning(
                    "ensemble '%s': %s -> %s: %s keeps state and %s has %d instances; alipes serve keeps the order of "
                    "a sequence between them, NVIDIA Triton may not",
                    ensemble.name,
                    name,
                    step.model_name,
                    step.model_name,
                    name,
                    instances,
                )


def _error(ensemble: EnsembleModel, message: str) -> ConfigError:
    return ConfigError(f"in ensemble '{ensemble.name}': {message}", key="ensemble_scheduling.step")
