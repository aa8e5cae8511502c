"""Asking a model for its configuration: `auto_complete_config`, in a process that ends with the answer.

The question is a JSON object: ``model_file``, ``version_directory``, ``model_config`` (a JSON text), ``model_name``.
The answer is ``{"config": {...}}`` or ``{"error": "..."}``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from alipes.worker.failure import describe
from alipes.worker.loading import LoadError, load_class, require_numpy

__all__ = ["answer"]


def answer(question: str) -> str:
    """What the model makes of its configuration."""
    request: dict[str, str] = json.loads(question)
    try:
        return json.dumps({"config": _completed(request)})
    except LoadError as error:
        return json.dumps({"error": str(error)})


def _completed(request: dict[str, str]) -> dict[str, Any]:
    require_numpy(request["model_name"])
    from alipes.worker.triton.install import install
    from alipes.worker.triton.model_config import ModelConfig

    install(request["version_directory"])
    model_class = load_class(Path(request["model_file"]), Path(request["version_directory"]))
    config = ModelConfig(request["model_config"])
    if not hasattr(model_class, "auto_complete_config"):
        return config.as_dict()
    try:
        config = model_class.auto_complete_config(config)
        if isinstance(config, ModelConfig):
            found = config.as_dict()
            json.dumps(found)  # what a model put there may be no JSON
            return found
    except BaseException as error:
        raise LoadError(describe(error)) from error
    raise LoadError(
        f"auto_complete_config function in model '{request['model_name']}' must return a valid pb.ModelConfig object."
    )
