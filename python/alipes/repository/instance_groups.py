"""Groups of instances in a configuration: adding them, and finding them again."""

from __future__ import annotations

from collections.abc import Sequence

from alipes.config.nearest import nearest
from alipes.config.schema import ModelConfig as Message
from alipes.errors import ConfigError

__all__ = ["add_group", "find_group"]

_KINDS = ("auto", "cpu", "gpu", "model")


def add_group(config: Message, kind: str, gpus: int | Sequence[int] | None, count: int, name: str | None) -> Message:
    """Add a group; see `ModelConfig.add_instance_group`."""
    word = str(kind).lower().removeprefix("kind_")
    if word not in _KINDS:
        close = nearest(word, _KINDS)
        hint = f"did you mean '{close}'?" if close else None
        raise ConfigError(
            f"unknown kind '{kind}' of an instance group of model '{config.name}', expected one of {', '.join(_KINDS)}",
            key="instance_group.kind",
            hint=hint,
        )
    _check_count(config, count)
    if name is not None and any(group.name == name for group in config.instance_group):
        raise ConfigError(f"model '{config.name}' has an instance group '{name}' already", key="instance_group.name")
    devices = _devices(config, gpus)
    group = config.instance_group.add(count=count)
    group.kind = group.DESCRIPTOR.enum_types_by_name["Kind"].values_by_name[f"KIND_{word.upper()}"].number
    group.gpus.extend(devices)
    if name is not None:
        group.name = name
    return group


def find_group(config: Message, name: int | str | None, count: int) -> Message:
    """The group that is to have `count` instances; see `ModelConfig.scale_instance_group`."""
    _check_count(config, count)
    groups = config.instance_group
    if not groups:
        raise ConfigError(
            f"model '{config.name}' has no instance groups: add_instance_group adds one", key="instance_group"
        )
    if isinstance(name, str):
        names = [group.name for group in groups]
        if name not in names:
            raise ConfigError(
                f"model '{config.name}' has no instance group '{name}', it has {', '.join(map(repr, names))}",
                key="instance_group.name",
            )
        return groups[names.index(name)]
    if name is not None and (isinstance(name, bool) or not isinstance(name, int)):
        raise TypeError(f"an instance group is found by its name or index, not by a {type(name).__name__}")
    if not -len(groups) <= (name or 0) < len(groups):
        raise IndexError(f"model '{config.name}' has {len(groups)} instance groups, no index {name}")
    return groups[name or 0]


def _devices(config: Message, gpus: int | Sequence[int] | None) -> list[int]:
    if gpus is None:
        return []
    if isinstance(gpus, int):
        if gpus < 1:
            raise ConfigError(f"instance group of model '{config.name}' on {gpus} GPUs: expected one or more")
        return list(range(gpus))
    return [int(gpu) for gpu in gpus]


def _check_count(config: Message, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ConfigError(
            f"instance group of model '{config.name}' with {count!r} instances: expected one or more",
            key="instance_group.count",
        )
