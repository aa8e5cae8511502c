"""How platform, backend and model file of a model are inferred from one another."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alipes.config.advice import model_advice
from alipes.config.model_files import PLATFORMS, Platform
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["ENSEMBLE", "GRAPH", "backend_of", "complete_backend"]

ENSEMBLE: Final = "ensemble"

GRAPH: Final = "kserve_inferencegraph"
"""What the server says of its graph. Source: `crates/service/src/graph/metadata.rs`."""


_SYNONYMS: Final = {"libtorch": "pytorch_libtorch"}


def backend_of(platform: str) -> str | None:
    """The backend that a platform belongs to; None for an unknown platform."""
    for row in PLATFORMS:
        if row.platform and row.platform == _SYNONYMS.get(platform, platform):
            return row.backend
    return None


def complete_backend(config: ModelConfig, folder: Path, name: str) -> None:
    """Fill in name, backend, platform and model file from each other and from the first version's files.

    Args:
        config: The configuration, changed in place; what it says already stays.
        folder: The model's folder.
        name: The folder's name, which is the model's.

    Raises:
        ConfigError: If neither field implies a backend.

    Source: Triton's server-side completion, which is never off.
    """
    config.name = config.name or name
    row = _row_of(config, folder)
    if row is not None:
        config.backend = config.backend or row.backend
        config.platform = config.platform or row.platform
        config.default_model_filename = config.default_model_filename or row.filename
    elif not (config.backend or config.platform or config.default_model_filename):
        _complete_from_name(config, folder, name)


def _row_of(config: ModelConfig, folder: Path) -> Platform | None:
    """The row that the backend belongs to; else platform or file name, whichever has the first row; else the files."""
    files = _files(folder)
    platform = _SYNONYMS.get(config.platform, config.platform)
    filename = config.default_model_filename
    if config.backend:
        rows = [row for row in PLATFORMS if row.backend == config.backend and not row.beside]
    elif platform or filename:
        rows = [row for row in PLATFORMS if platform == (row.platform or None) or filename == (row.filename or None)]
    else:
        rows = [row for row in PLATFORMS if row.filename in files and not row.beside]
    # Two backends have two rows: platform and file distinguish them.
    names = {filename} if filename else files
    fitting = [row for row in rows if platform in ("", row.platform) and row.filename in names]
    return next(iter(fitting or rows), None)


def _files(folder: Path) -> frozenset[str]:
    """Names in the lexicographically first version directory; none where there is no version."""
    try:
        versions = sorted(entry.name for entry in folder.iterdir() if entry.name.isdigit() and entry.is_dir())
        return frozenset(entry.name for entry in (folder / versions[0]).iterdir()) if versions else frozenset()
    except OSError:
        return frozenset()


def _complete_from_name(config: ModelConfig, folder: Path, name: str) -> None:
    """Read the backend from a model name of the form `anything.<backend>`."""
    _, dot, backend = name.partition(".")
    if not dot:
        usual = (
            'name the backend in config.pbtxt, for example backend: "onnxruntime"; an ensemble has platform: "ensemble"'
        )
        raise ConfigError(
            f"Invalid model name: Could not determine backend for model '{name}' with no backend in model "
            "configuration. Expected model name of the form 'model.<backend_name>'.",
            key="backend",
            hint=model_advice(folder, name) or usual,
        )
    config.backend = backend
    config.default_model_filename = f"model.{backend}"
