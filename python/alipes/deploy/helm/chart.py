"""The files of a chart."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, Final

import msgspec

from alipes.deploy.description import Description
from alipes.deploy.repository_place import check_repository
from alipes.deploy.yaml_text import yaml_of

__all__ = ["chart_files"]

_HEAD: Final = """\
# What is deployed. `values.schema.json` has the types and bounds.
# `alipes deploy kubernetes --values` takes this file, too.
"""
_KUBERNETES: Final = ">=1.30.0-0"
"""The first release whose pods can wait before they are stopped without a shell."""


def chart_files(description: Description, version: str) -> dict[str, str]:
    """The chart's files by their names, with the description as its values.

    Args:
        description: The values.
        version: Of alipes.

    Raises:
        ConfigError: If no pod could reach the models.
    """
    check_repository(description.repository)
    head = {
        "apiVersion": "v2",
        "name": "alipes",
        "description": "Serves trained models over HTTP and gRPC, as NVIDIA Triton does.",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": _KUBERNETES,
    }
    files = {
        "Chart.yaml": yaml_of([head]),
        "values.yaml": _HEAD + yaml_of([msgspec.to_builtins(description)]),
        "values.schema.json": json.dumps(_schema(), indent=2) + "\n",
    }
    for template in sorted(resources.files("alipes.deploy.helm").joinpath("templates").iterdir(), key=str):
        files[f"templates/{template.name}"] = template.read_text(encoding="utf-8")
    return files


def _schema() -> dict[str, Any]:
    """The schema of values. Helm adds `global` to the values of any chart."""
    schema = msgspec.json.schema(Description)
    parts: dict[str, Any] = schema["$defs"]
    parts["Description"]["properties"]["global"] = {}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **_without_titles(schema)}


def _without_titles(schema: Any) -> Any:
    """Without class names and docstrings, which say nothing of values."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_titles(part)
        for name, part in schema.items()
        if not (name in {"title", "description"} and isinstance(part, str))
    }
