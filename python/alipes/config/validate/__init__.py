"""Checks a configuration in Triton's words, in the two stages in which Triton answers: poll and load."""

from __future__ import annotations

from pathlib import Path

from alipes.config.options import ModelOptions
from alipes.config.platforms import ENSEMBLE
from alipes.config.schema import ModelConfig
from alipes.config.validate.batch_io import check_batch_io
from alipes.config.validate.batching import check_dynamic_batching
from alipes.config.validate.caching import check_caching
from alipes.config.validate.ensembles import check_ensemble
from alipes.config.validate.identity import check_max_batch_size, check_name, check_platform
from alipes.config.validate.instance_groups import check_instance_groups
from alipes.config.validate.metrics import check_metrics
from alipes.config.validate.sequences import check_sequences
from alipes.config.validate.states import check_states
from alipes.config.validate.tensors import check_tensors
from alipes.config.validate.warmup import check_warmup

__all__ = ["check_load", "check_poll"]


def check_poll(config: ModelConfig, name: str, *, strict: bool) -> None:
    """Check what needs no version: identity, scheduler, cache, the structure of an ensemble.

    Args:
        config: The configuration, normalised.
        name: Name of the model's folder.
        strict: Whether inputs and outputs must be complete already.

    Raises:
        ConfigError: With the first thing that is wrong.
    """
    check_name(config, name)
    check_platform(config)
    check_max_batch_size(config)
    check_dynamic_batching(config)
    check_sequences(config)
    check_caching(config)
    check_metrics(config)
    if config.platform == ENSEMBLE:
        check_ensemble(config)
    elif strict:
        check_tensors(config)


def check_load(config: ModelConfig, folder: Path, options: ModelOptions) -> None:
    """Check what is known once a version was looked at: instance groups, inputs, outputs, states, warm-up.

    Args:
        config: The configuration, complete.
        folder: The model's folder.
        options: How the rate limiter is set.

    Raises:
        ConfigError: With the first thing that is wrong.
    """
    check_instance_groups(config, options)
    check_tensors(config)
    check_batch_io(config)
    check_states(config, folder)
    check_warmup(config, folder)
