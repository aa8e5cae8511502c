"""Checks the structure of an ensemble, without the models that it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from alipes.config.limits import MAX_STEP_TENSORS, MAX_STEPS
from alipes.config.platforms import ENSEMBLE
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["check_ensemble"]


@dataclass(slots=True)
class _Node:
    """A tensor of the graph: what it is computed from, and what is computed from it."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    written: bool = False


def check_ensemble(config: ModelConfig) -> None:
    """Every tensor is produced once, reachable from the inputs, and used. Any other model has no steps."""
    name = config.name
    if not config.HasField("ensemble_scheduling"):
        if config.platform == ENSEMBLE:
            raise ConfigError(
                f"ensemble scheduling must be set for ensemble {name} whose platform is ensemble",
                key="ensemble_scheduling",
            )
        return
    if config.platform != ENSEMBLE:
        raise ConfigError(
            f"ensemble scheduling cannot be set for model '{name}' whose platform is not ensemble", key="platform"
        )
    for forbidden, called in (("instance_group", "instance group"), ("optimization", "optimization")):
        if _is_set(config, forbidden):
            raise ConfigError(f"{called} should not be specified for ensemble '{name}'", key=forbidden)
    if config.model_warmup:
        raise ConfigError(f"model_warmup can not be specified for ensemble '{name}'", key="model_warmup")
    if not config.ensemble_scheduling.step:
        raise _error(f"must specify 'step' for ensemble '{name}'")
    _check_size(config)
    graph = _graph(config)
    ready = _reachable(config, graph)
    _check_outputs(config, graph, ready)
    outputs = {tensor.name for tensor in config.output}
    for tensor, node in graph.items():
        if tensor not in outputs and (tensor not in ready or not node.after):
            raise _error(f"ensemble tensor '{tensor}' is unused in ensemble '{name}'")


def _is_set(config: ModelConfig, name: str) -> bool:
    return any(descriptor.name == name for descriptor, _ in config.ListFields())


def _check_size(config: ModelConfig) -> None:
    steps = config.ensemble_scheduling.step
    if len(steps) > MAX_STEPS:
        raise _error(f"ensemble '{config.name}' has {len(steps)} steps, more than the limit of {MAX_STEPS}")
    for index, step in enumerate(steps):
        tensors = max(len(step.input_map), len(step.output_map))
        if tensors > MAX_STEP_TENSORS:
            raise _error(
                f"step {index} of ensemble '{config.name}' maps {tensors} tensors, more than the limit of "
                f"{MAX_STEP_TENSORS}"
            )


def _graph(config: ModelConfig) -> dict[str, _Node]:
    graph: dict[str, _Node] = {}
    for index, step in enumerate(config.ensemble_scheduling.step):
        for field_name in ("model_name", "input_map", "output_map"):
            if not getattr(step, field_name):
                raise _error(f"must specify '{field_name}' in step {index} of ensemble '{config.name}'")
        produced = [step.output_map[key] for key in sorted(step.output_map)]
        consumed = [step.input_map[key] for key in sorted(step.input_map)]
        for tensor in produced:
            node = graph.setdefault(tensor, _Node())
            if node.written:
                raise _error(
                    f"ensemble tensor '{tensor}' can appear in an output map only once for ensemble '{config.name}' "
                    f"step {index}"
                )
            node.written = True
            node.before += consumed
        for tensor in consumed:
            graph.setdefault(tensor, _Node()).after += produced
    return graph


def _reachable(config: ModelConfig, graph: dict[str, _Node]) -> set[str]:
    """The tensors that can be computed from the ensemble's inputs."""
    ready: set[str] = set()
    for tensor in config.input:
        if tensor.name not in graph:
            raise _error(f"ensemble input '{tensor.name}' for ensemble {config.name}' is not used")
        ready.add(tensor.name)
    waiting = list(ready)
    while waiting:
        for tensor in graph[waiting.pop()].after:
            if tensor not in ready and all(one in ready for one in graph[tensor].before):
                ready.add(tensor)
                waiting.append(tensor)
    return ready


def _check_outputs(config: ModelConfig, graph: dict[str, _Node], ready: set[str]) -> None:
    for tensor in config.output:
        node = graph.get(tensor.name)
        if node is None:
            raise _error(f"ensemble output '{tensor.name}' for ensemble {config.name}' is not used")
        if tensor.name not in ready:
            source = _unwritten_source(tensor.name, graph, ready)
            where = f": at least one of its depending tensors, '{source}', is not connected" if source else ""
            raise _error(f"output '{tensor.name}' for ensemble '{config.name}' is not written{where}")


def _unwritten_source(output: str, graph: dict[str, _Node], ready: set[str]) -> str:
    """The tensor that an output waits for in the end; empty where it waits for itself alone."""
    last = output
    seen: set[str] = set()
    while missing := [one for one in graph[last].before if one not in ready and one not in seen]:
        last = missing[0]
        seen.add(last)
    return "" if last == output else last


def _error(message: str) -> ConfigError:
    return ConfigError(message, key="ensemble_scheduling.step")
