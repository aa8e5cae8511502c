"""What a model is: its name, its platform and backend, its largest batch."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alipes.config.model_files import PLATFORMS
from alipes.config.nearest import nearest
from alipes.config.platforms import ENSEMBLE, backend_of
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["check_max_batch_size", "check_name", "check_platform", "check_runtime"]

_PAIRED: Final = ("tensorflow", "tensorrt", "onnxruntime", "pytorch", "snapshotter", "averager")
"""Backends that go with platforms of their own: Triton's, and ours. Any other takes whatever platform is written."""


def check_name(config: ModelConfig, name: str) -> None:
    """The name is that of the folder."""
    if config.name != name:
        raise ConfigError(
            f"unexpected directory name '{name}' for model '{config.name}', directory name must equal model name",
            key="name",
        )


def check_platform(config: ModelConfig) -> None:
    """There is a backend, unless this is an ensemble, and the platform is one that belongs to it."""
    if not config.backend and config.platform != ENSEMBLE:
        close = nearest(config.platform, [row.platform for row in PLATFORMS])
        raise ConfigError(
            f"unexpected platform type '{config.platform}' for {config.name}",
            key="platform",
            hint=f"did you mean '{close}'?" if close else None,
        )
    if config.backend and config.platform == ENSEMBLE:
        raise ConfigError(
            f"Ensemble model '{config.name}' must have platform type 'ensemble' and empty backend type", key="platform"
        )
    if config.backend in _PAIRED and config.backend != backend_of(config.platform):
        raise ConfigError(
            f"unexpected 'platform' and 'backend' pair, got:{config.platform}, {config.backend}", key="platform"
        )


def check_max_batch_size(config: ModelConfig) -> None:
    """The largest batch is no negative number."""
    if config.max_batch_size < 0:
        raise ConfigError(f"'max_batch_size' must be non-negative value for {config.name}", key="max_batch_size")


def check_runtime(config: ModelConfig, folder: Path, version: int) -> None:
    """The library that is named, if any, is the one that Triton would take unasked; there is no other.

    A model of PyTorch may name `model.py`, which makes its module.
    """
    wanted = config.runtime
    known = (f"libtriton_{config.backend}.so", *(("model.py",) if config.backend == "pytorch" else ()))
    if wanted and wanted not in known:
        raise ConfigError(
            f"unable to find backend library '{wanted}' for model '{config.name}', searched: "
            f"'{folder / str(version)}' '{folder}' ",
            key="runtime",
            hint="leave the field out: each backend has one runtime here",
        )
