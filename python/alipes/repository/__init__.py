"""Where models live: repositories of model folders, the versions in them, and what writes them.

`from alipes import repository as qv` offers what a training script needs; the server reads the same folders through
`layout`, `repository` and `versions`. Names are imported on first use, so neither pays for the other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "EnsembleConfig",
    "EnsembleModel",
    "Exporter",
    "ExposedTensor",
    "Model",
    "ModelConfig",
    "ModelRepository",
    "Platform",
    "conventions",
    "print_tree",
]

if TYPE_CHECKING:
    from alipes.repository.ensemble import EnsembleModel
    from alipes.repository.ensemble_config import EnsembleConfig
    from alipes.repository.export.exporter import Exporter
    from alipes.repository.model import Model
    from alipes.repository.model_config import ModelConfig
    from alipes.repository.model_repository import ModelRepository
    from alipes.repository.platform import Platform, conventions
    from alipes.repository.tensors import ExposedTensor
    from alipes.repository.tree import print_tree

_HOMES = {
    "EnsembleConfig": "ensemble_config",
    "EnsembleModel": "ensemble",
    "Exporter": "export.exporter",
    "ExposedTensor": "tensors",
    "Model": "model",
    "ModelConfig": "model_config",
    "ModelRepository": "model_repository",
    "Platform": "platform",
    "conventions": "platform",
    "print_tree": "tree",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
