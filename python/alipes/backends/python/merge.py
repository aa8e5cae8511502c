"""Takes over what `auto_complete_config` returned: inputs, outputs, largest batch, scheduler, transaction policy.

Everything else that the model changed in its copy is dropped.
Source: Triton, which lets a backend set these and nothing more.
"""

from __future__ import annotations

from typing import Any, Final

from alipes.config.normalize import normalize_batching
from alipes.config.override import from_document
from alipes.config.schema import ModelConfig
from alipes.config.validate import check_config
from alipes.errors import ConfigError

__all__ = ["merge_completed"]

_SCHEDULER: Final = "scheduling_choice"


def merge_completed(config: ModelConfig, completed: dict[str, Any]) -> None:
    """Complete a configuration in place, and check again what may have changed.

    Args:
        config: The configuration that the model was shown.
        completed: The configuration that it returned, as JSON.

    Raises:
        ConfigError: If the model returned no valid configuration, or another scheduler than it was shown.
    """
    returned = _read(completed, config.name)
    config.max_batch_size = returned.max_batch_size
    for side in ("input", "output"):
        config.ClearField(side)
        getattr(config, side).extend(getattr(returned, side))
    _take_scheduler(config, returned)
    if returned.HasField("model_transaction_policy"):
        config.model_transaction_policy.decoupled = returned.model_transaction_policy.decoupled
    normalize_batching(config)
    check_config(config)


def _read(completed: dict[str, Any], name: str) -> ModelConfig:
    try:
        return from_document(completed)
    except ConfigError as error:
        raise ConfigError(
            f"auto_complete_config of model '{name}' returned no valid configuration: {error}",
            key=error.key,
            hint=error.hint,
        ) from error


def _take_scheduler(config: ModelConfig, returned: ModelConfig) -> None:
    """Keeps the scheduler of the configuration; uses the model's where there is none."""
    current, chosen = config.WhichOneof(_SCHEDULER), returned.WhichOneof(_SCHEDULER)
    if current is None and chosen is not None:
        getattr(config, chosen).CopyFrom(getattr(returned, chosen))
    elif current != chosen:
        raise ConfigError(
            f"Cannot update scheduling choice from {_number(config, current)} to {_number(config, chosen)} when "
            "auto-completing.",
            key=current,
            hint=f"auto_complete_config took {current} for {chosen or 'no scheduler'}",
            code="INTERNAL",
        )


def _number(config: ModelConfig, scheduler: str | None) -> int:
    """The number of a scheduler's field, by which Triton calls it; 0 for none."""
    return config.DESCRIPTOR.fields_by_name[scheduler].number if scheduler is not None else 0
