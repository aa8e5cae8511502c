"""Checks a configuration in Triton's words, in the two stages in which Triton answers: poll and load.

The order is Triton's too: of several things that are wrong, the first one found is the one that is told.
Source: what Triton's core checks of a model as it polls a repository, creates the model, and creates its instances.
"""

from __future__ import annotations

from pathlib import Path

from alipes.config.options import ModelOptions
from alipes.config.schema import ModelConfig
from alipes.config.validate.batch_io import check_batch_io
from alipes.config.validate.batching import check_dynamic_batching
from alipes.config.validate.caching import check_caching
from alipes.config.validate.ensembles import check_ensemble
from alipes.config.validate.identity import check_max_batch_size, check_name, check_platform
from alipes.config.validate.instance_groups import check_resources
from alipes.config.validate.metrics import check_metrics
from alipes.config.validate.sequences import check_sequences
from alipes.config.validate.states import check_states
from alipes.config.validate.tensors import check_tensors
from alipes.config.validate.warmup import check_warmup

__all__ = ["check_config", "check_declared", "check_instances", "check_poll"]


def check_poll(config: ModelConfig, name: str, *, strict: bool) -> None:
    """Check what is known before any version is looked at.

    Args:
        config: The configuration, normalised.
        name: Name of the model's folder.
        strict: Whether inputs and outputs must be complete already.

    Raises:
        ConfigError: With the first thing that is wrong.
    """
    check_config(config)
    if strict:
        check_tensors(config)
        check_batch_io(config)
    check_name(config, name)


def check_config(config: ModelConfig) -> None:
    """Check identity, scheduler, the structure of an ensemble, cache and metrics.

    Args:
        config: The configuration, normalised.

    Raises:
        ConfigError: With the first thing that is wrong.
    """
    check_platform(config)
    check_max_batch_size(config)
    check_dynamic_batching(config)
    check_sequences(config)
    check_ensemble(config)
    check_caching(config)
    check_metrics(config)


def check_declared(config: ModelConfig) -> None:
    """Check a configuration once it is complete, before its model is created.

    Args:
        config: The configuration, complete.

    Raises:
        ConfigError: With the first thing that is wrong.
    """
    check_config(config)
    check_tensors(config)
    check_batch_io(config)


def check_instances(config: ModelConfig, folder: Path, options: ModelOptions) -> None:
    """Check what instances need: the samples of their warm-up, resources, the states that sequences begin with.

    Args:
        config: The configuration, complete; it fits the model.
        folder: The model's folder.
        options: How the rate limiter is set.

    Raises:
        ConfigError: With the first thing that is wrong.
    """
    check_warmup(config, folder)
    check_resources(config, options)
    check_states(config, folder)
