"""Asking a model for its configuration: `auto_complete_config`, in a process that ends with the answer.

The question is the setup of a worker. The answer is ``{"answer": {...}}`` or ``{"error": "..."}``: the configuration
or, where a framework opens the model's file, the signature of that file and whether its rows are independent.
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
    request: dict[str, Any] = json.loads(question)
    try:
        return json.dumps({"answer": _described(request) if request.get("framework") else _completed(request)})
    except LoadError as error:
        return json.dumps({"error": str(error)})


def _described(request: dict[str, Any]) -> dict[str, Any]:
    require_numpy(request["model_name"])
    from alipes.worker.frameworks.description import describe_file
    from alipes.worker.setup import opening_of

    signature, proof = describe_file(request["framework"], opening_of(request), prove=request["prove_rows"])
    return {"signature": json.loads(signature.to_json()), "rows": proof.to_document() if proof else None}


def _completed(request: dict[str, Any]) -> dict[str, Any]:
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
