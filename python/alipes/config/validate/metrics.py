"""The buckets that a model asks for in its histograms."""

from __future__ import annotations

from itertools import pairwise
from math import inf

from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["check_metrics"]


def check_metrics(config: ModelConfig) -> None:
    """Each entry names a family of metrics and the buckets for it."""
    for control in config.model_metrics.metric_control:
        if not control.HasField("metric_identifier"):
            raise _error("metric control must specify 'metric_identifier'", "metric_identifier")
        if not control.metric_identifier.family:
            raise _error("metric identifier must specify non-empty 'family'", "metric_identifier.family")
        if not control.HasField("histogram_options"):
            raise _error("metric control must specify 'histogram_options'", "histogram_options")
        if not control.histogram_options.buckets:
            raise _error("histogram options must specify non-empty 'buckets'", "histogram_options.buckets")
        buckets = list(control.histogram_options.buckets)
        if not all(lower < upper < inf for lower, upper in pairwise([-inf, *buckets])):
            raise _error(
                f"histogram options must specify ascending 'buckets', got {buckets}", "histogram_options.buckets"
            )


def _error(message: str, field: str) -> ConfigError:
    return ConfigError(message, key=f"model_metrics.metric_control.{field}")
