"""What the response cache cannot be combined with."""

from __future__ import annotations

from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["cannot_cache", "check_caching"]


def check_caching(config: ModelConfig) -> None:
    """Decoupled answers cannot be cached. Nor can those of sequences, which is looked at with their scheduler."""
    if config.response_cache.enable and config.model_transaction_policy.decoupled:
        raise cannot_cache(config, "'decoupled' transaction policy")


def cannot_cache(config: ModelConfig, what: str) -> ConfigError:
    """The refusal of a model that cannot have its answers cached, for any reason."""
    return ConfigError(
        f"Response Cache does not currently support model {config.name} with {what}. "
        "Please disable the response cache.",
        key="response_cache.enable",
    )
