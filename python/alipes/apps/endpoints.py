"""What models in repositories say of their endpoints: exported functions all, others their methods."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from alipes.repository.app_folder import APP_FILE
from alipes.server.published import EndpointModel

__all__ = ["described"]

_MAX_BYTES: Final = 1 << 20
"""Most bytes of a file that describes a model."""


def described(models: Iterable[EndpointModel]) -> list[dict[str, Any]]:
    """Models with an endpoint, as the API page has them.

    Args:
        models: The models.
    """
    return [_exported(model) or _plain(model) for model in models]


def _exported(model: EndpointModel) -> dict[str, Any] | None:
    """What the export wrote of a function; None where the model was not made so, or the file is another's."""
    try:
        with (model.folder / APP_FILE).open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
        schema = json.loads(text)["schema"] if len(text) <= _MAX_BYTES else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(schema, dict):
        return None
    return _model(model, schema)


def _plain(model: EndpointModel) -> dict[str, Any]:
    anything: dict[str, Any] = {"*/*": {"schema": {}}}
    schema: dict[str, Any] = {
        "summary": model.name,
        "description": "The model reads the body itself.",
        "parameters": [],
        "request": anything,
        "result": "What the model answers.",
        "response": {"text/event-stream": {"schema": {}}} if model.is_stream else anything,
        "tensors": None,
        "components": {},
    }
    return _model(model, schema)


def _model(model: EndpointModel, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": model.name,
        "methods": model.methods,
        "is_stream": model.is_stream,
        "has_endpoint": True,
        "schema": schema,
    }
