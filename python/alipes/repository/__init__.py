"""Where models live: repositories of model folders, the versions in them, and what writes them.

`from alipes import repository as qv` offers what a training script needs; the server reads the same folders through
`layout`, `repository` and `versions`. Names are imported on first use, so neither pays for the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = [
    "Chain",
    "EnsembleConfig",
    "EnsembleModel",
    "Exporter",
    "ExposedTensor",
    "Model",
    "ModelConfig",
    "ModelRepository",
    "Platform",
    "conventions",
    "pipe",
    "print_tree",
]

if TYPE_CHECKING:
    from alipes.repository.chain import Chain, pipe
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
    "Chain": "alipes.repository.chain",
    "EnsembleConfig": "alipes.repository.ensemble_config",
    "EnsembleModel": "alipes.repository.ensemble",
    "Exporter": "alipes.repository.export.exporter",
    "ExposedTensor": "alipes.repository.tensors",
    "Model": "alipes.repository.model",
    "ModelConfig": "alipes.repository.model_config",
    "ModelRepository": "alipes.repository.model_repository",
    "Platform": "alipes.repository.platform",
    "conventions": "alipes.repository.platform",
    "pipe": "alipes.repository.chain",
    "print_tree": "alipes.repository.tree",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
