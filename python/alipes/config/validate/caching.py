"""What the response cache cannot be combined with."""

from __future__ import annotations

from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["cannot_cache", "check_caching"]


def check_caching(config: ModelConfig) -> None:
    """Neither sequences nor decoupled answers can be cached."""
    if not config.response_cache.enable:
        return
    if config.model_transaction_policy.decoupled:
        raise cannot_cache(config, "'decoupled' transaction policy")
    if config.HasField("sequence_batching"):
        raise cannot_cache(config, "sequence batching scheduler")


def cannot_cache(config: ModelConfig, what: str) -> ConfigError:
    """The refusal of a model that cannot have its answers cached, for any reason."""
    return ConfigError(
        f"Response Cache does not currently support model {config.name} with {what}. "
        "Please disable the response cache.",
        key="response_cache.enable",
    )
