"""The dynamic batcher's settings."""

from __future__ import annotations

from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["check_dynamic_batching"]


def check_dynamic_batching(config: ModelConfig) -> None:
    """Preferred sizes fit the largest batch, priorities lie in their range, order is promised where it can be kept."""
    if not config.HasField("dynamic_batching"):
        return
    batching = config.dynamic_batching
    for size in batching.preferred_batch_size:
        if size <= 0:
            raise _error(f"dynamic batching preferred size must be positive for {config.name}", "preferred_batch_size")
        if size > config.max_batch_size:
            raise _error(
                f"dynamic batching preferred size must be <= max batch size for {config.name}", "preferred_batch_size"
            )
    _check_priorities(config, batching)
    if batching.preserve_ordering:
        _check_order(config, batching)


def _check_priorities(config: ModelConfig, batching: ModelConfig) -> None:
    levels = batching.priority_levels
    if levels == 0:
        return
    if not 1 <= batching.default_priority_level <= levels:
        raise _error(
            f"default priority level must be in range [1, {levels}] for {config.name}", "default_priority_level"
        )
    if any(not 1 <= level <= levels for level in batching.priority_queue_policy):
        raise _error(
            f"priority queue policy must have priority level in range [1, {levels}] for {config.name}",
            "priority_queue_policy",
        )


def _check_order(config: ModelConfig, batching: ModelConfig) -> None:
    if batching.priority_levels > 1:
        raise _error(
            f"Only one priority level is allowed when 'preserve_ordering' is true for {config.name}", "priority_levels"
        )
    policies = [batching.default_queue_policy, *batching.priority_queue_policy.values()]
    # Without a time limit there is nothing to put off.
    if any(policy.default_timeout_microseconds and policy.timeout_action == policy.DELAY for policy in policies):
        raise _error(
            f"Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for {config.name}",
            "default_queue_policy.timeout_action",
        )


def _error(message: str, field: str) -> ConfigError:
    return ConfigError(message, key=f"dynamic_batching.{field}")
