"""What a model is: its name, its platform and backend, its largest batch."""

from __future__ import annotations

from alipes.config.nearest import nearest
from alipes.config.platforms import ENSEMBLE, PLATFORMS, backend_of
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["check_max_batch_size", "check_name", "check_platform"]


def check_name(config: ModelConfig, name: str) -> None:
    """The name is that of the folder."""
    if not config.name:
        raise ConfigError("model configuration must specify 'name'", key="name")
    if config.name != name:
        raise ConfigError(
            f"unexpected directory name '{name}' for model '{config.name}', directory name must equal model name",
            key="name",
        )


def check_platform(config: ModelConfig) -> None:
    """Platform and backend are known and belong together."""
    is_ensemble = config.platform == ENSEMBLE
    if is_ensemble != config.HasField("ensemble_scheduling") or (is_ensemble and config.backend):
        raise ConfigError(
            f"Ensemble model '{config.name}' must have platform type 'ensemble' and empty backend type", key="platform"
        )
    if is_ensemble:
        return
    owner = backend_of(config.platform) if config.platform else None
    if config.platform and owner is None and not config.backend:
        close = nearest(config.platform, [row.platform for row in PLATFORMS])
        raise ConfigError(
            f"unexpected platform type '{config.platform}' for {config.name}",
            key="platform",
            hint=f"did you mean '{close}'?" if close else None,
        )
    if not config.backend:
        raise ConfigError(f"must specify 'platform' or 'backend' for '{config.name}'", key="backend")
    known_backend = any(row.backend == config.backend for row in PLATFORMS)
    if config.platform and owner != (config.backend if known_backend else None):
        raise ConfigError(
            f"unexpected 'platform' and 'backend' pair, got:{config.platform}, {config.backend}", key="platform"
        )


def check_max_batch_size(config: ModelConfig) -> None:
    """The largest batch is no negative number."""
    if config.max_batch_size < 0:
        raise ConfigError(f"'max_batch_size' must be non-negative value for {config.name}", key="max_batch_size")
