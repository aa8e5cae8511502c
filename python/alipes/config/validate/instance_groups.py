"""Where instances run, and whether the rate limiter has what they ask for."""

from __future__ import annotations

from alipes.config.gpus import NO_GPUS, OLDEST_GPU, Gpus, GpuUse
from alipes.config.instances import group_size
from alipes.config.limits import MAX_INSTANCES
from alipes.config.options import ModelOptions
from alipes.config.schema import ModelConfig, enum_word
from alipes.errors import ConfigError

__all__ = ["check_instance_groups", "check_resources"]


def check_instance_groups(config: ModelConfig, gpus: Gpus = NO_GPUS) -> None:
    """Each group's kind can be had, and agrees with the devices that the group names; the instances can be counted."""
    for group in config.instance_group:
        _check_kind(config, group, gpus)
        if group.profile:
            # The missing space is Triton's.
            raise ConfigError(
                f"instance group {group.name} of model {config.name} and platform {config.platform}specifies profile "
                "field which is only supported for TensorRT models",
                key="instance_group.profile",
            )
    count = sum(group_size(group) for group in config.instance_group)
    if count > MAX_INSTANCES:
        raise ConfigError(
            f"instance groups of model {config.name} ask for {count} instances, more than the limit of {MAX_INSTANCES}",
            key="instance_group.count",
        )
    if config.instance_group and all(group.passive for group in config.instance_group):
        raise ConfigError(
            f"instance groups of model {config.name} are all passive: no instance would execute requests",
            key="instance_group.passive",
        )


def _check_kind(config: ModelConfig, group: ModelConfig, gpus: Gpus) -> None:
    called = f"instance group {group.name} of model {config.name}"
    if group.kind == group.KIND_GPU:
        _check_gpus(called, group, gpus)
        return
    if group.kind not in (group.KIND_CPU, group.KIND_MODEL):
        # What is no kind falls under the one that every other has been taken for by now.
        raise ConfigError(f"{called} has unexpected kind KIND_AUTO", key="instance_group.kind", code="INTERNAL")
    if group.gpus:
        raise ConfigError(
            f"{called} has kind {enum_word(group, 'kind')} but specifies one or more GPUs", key="instance_group.gpus"
        )


def _check_gpus(called: str, group: ModelConfig, gpus: Gpus) -> None:
    """The GPUs of a group of KIND_GPU are there, and each is named once."""
    hint = None if gpus.numbers else "--gpu-fallback=cpu runs it on the CPU"
    if gpus.use is GpuUse.NEVER:
        wrong = "has kind KIND_GPU but its backend computes on the CPU alone"
        raise ConfigError(f"{called} {wrong}", key="instance_group.kind", hint=hint)
    if not group.gpus:
        raise ConfigError(f"{called} has kind KIND_GPU but no GPUs are available", key="instance_group.kind", hint=hint)
    for number in group.gpus:
        if number not in gpus.numbers:
            oldest, there = float(".".join(map(str, OLDEST_GPU))), ", ".join(map(str, gpus.numbers))
            raise ConfigError(
                f"{called} specifies invalid or unsupported gpu id {number}. GPUs with at least the minimum required "
                f"CUDA compute compatibility of {oldest:f} are: {there}",
                key="instance_group.kind",
                hint=hint,
            )
    if len(set(group.gpus)) < len(group.gpus):
        raise ConfigError(
            f"{called} names a GPU twice: raise its count for more instances on each of its GPUs",
            key="instance_group.gpus",
        )


def check_resources(config: ModelConfig, options: ModelOptions) -> None:
    """No instance needs more of a resource than there is; where none has a limit, none is too small."""
    if options.rate_limit != "execution_count":
        return
    needed: dict[tuple[str, bool], int] = {}
    for group in config.instance_group:
        for resource in group.rate_limiter.resources:
            key = (resource.name, getattr(resource, "global"))
            needed[key] = max(needed.get(key, 0), resource.count)
    for (name, anywhere), count in needed.items():
        limit = options.limit(name, anywhere=anywhere)
        if limit is not None and limit < count:
            raise ConfigError(
                f'Resource count for "{name}" is limited to {limit} which will prevent scheduling of one or '
                f"more model instances, the minimum required count is {count}",
                key="instance_group.rate_limiter.resources",
            )
