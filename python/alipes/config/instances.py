"""The instances of a model: their names, and where each runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from alipes.config.schema import ModelConfig, enum_word

__all__ = ["Instance", "group_size", "instance_names", "instances_of", "is_on_gpu", "placements"]


class Instance(NamedTuple):
    """One instance.

    Attributes:
        name: `<group>_<i>`; on a GPU `<group>_<i>_gpu<number>`, since each of the group's GPUs has its own.
        group: The group that it belongs to.
        device: The number of its GPU; 0 elsewhere.
    """

    name: str
    group: ModelConfig
    device: int = 0


def instances_of(config: ModelConfig, *, passive: bool = False) -> list[Instance]:
    """The instances of a model, groups in their order; those that execute requests, or those that never do."""
    groups = (group for group in config.instance_group if group.passive == passive)
    return [instance for group in groups for index in range(group.count) for instance in _at(group, index)]


def instance_names(config: ModelConfig) -> list[str]:
    """The names of the instances that execute requests."""
    return [instance.name for instance in instances_of(config)]


def group_size(group: ModelConfig) -> int:
    """Number of instances of a group: `count` on each of its GPUs."""
    return int(group.count) * (len(group.gpus) if group.kind == group.KIND_GPU else 1)


def is_on_gpu(config: ModelConfig) -> bool:
    """Whether any instance of a model runs on a GPU."""
    return any(group.kind == group.KIND_GPU for group in config.instance_group)


def placements(config: ModelConfig) -> dict[str, dict[str, Any]]:
    """Where instances run that do not run on the CPU, by their names: kind and number of the device."""
    everyone = [*instances_of(config), *instances_of(config, passive=True)]
    return {
        name: {"kind": enum_word(group, "kind").removeprefix("KIND_"), "device_id": device}
        for name, group, device in everyone
        if group.kind != group.KIND_CPU
    }


def _at(group: ModelConfig, index: int) -> list[Instance]:
    name = f"{group.name}_{index}"
    if group.kind != group.KIND_GPU:
        return [Instance(name, group)]
    return [Instance(f"{name}_gpu{gpu}", group, gpu) for gpu in group.gpus]
