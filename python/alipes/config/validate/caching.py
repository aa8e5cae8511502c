"""What the response cache cannot be combined with."""

from __future__ import annotations

from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["check_caching"]


def check_caching(config: ModelConfig) -> None:
    """Neither sequences nor decoupled answers can be cached."""
    if not config.response_cache.enable:
        return
    if config.model_transaction_policy.decoupled:
        raise _error(config, "'decoupled' transaction policy")
    if config.HasField("sequence_batching"):
        raise _error(config, "sequence batching scheduler")


def _error(config: ModelConfig, what: str) -> ConfigError:
    return ConfigError(
        f"Response Cache does not currently support model {config.name} with {what}. "
        "Please disable the response cache.",
        key="response_cache.enable",
    )
