"""Where instances run, and whether the rate limiter has what they ask for."""

from __future__ import annotations

from alipes.config.limits import MAX_INSTANCES
from alipes.config.options import ModelOptions
from alipes.config.schema import ModelConfig, enum_word
from alipes.errors import ConfigError

__all__ = ["check_instance_groups", "check_resources"]


def check_instance_groups(config: ModelConfig, options: ModelOptions) -> None:
    """Each group's kind can be had, and agrees with the devices that the group names."""
    for group in config.instance_group:
        called = f"instance group {group.name} of model {config.name} has kind {enum_word(group, 'kind')}"
        if group.kind == group.KIND_GPU:
            raise ConfigError(
                f"{called} but no GPUs are available",
                key="instance_group.kind",
                hint="--gpu-fallback=cpu runs it on the CPU",
            )
        if group.gpus:
            raise ConfigError(f"{called} but specifies one or more GPUs", key="instance_group.gpus")
        if group.kind not in (group.KIND_CPU, group.KIND_MODEL):
            raise ConfigError(f"{called}, which is unknown", key="instance_group.kind")
    count = sum(group.count for group in config.instance_group)
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
    if options.rate_limit == "execution_count":
        check_resources(config, options)


def check_resources(config: ModelConfig, options: ModelOptions) -> None:
    """No instance needs more of a resource than there is; a resource without a limit is never too small."""
    limits = options.limits()
    needed: dict[str, int] = {}
    for group in config.instance_group:
        for resource in group.rate_limiter.resources:
            needed[resource.name] = max(needed.get(resource.name, 0), resource.count)
    for name, count in needed.items():
        if limits.get(name, count) < count:
            raise ConfigError(
                f'Resource count for "{name}" is limited to {limits[name]} which will prevent scheduling of one or '
                f"more model instances, the minimum required count is {count}",
                key="instance_group.rate_limiter.resources",
            )
