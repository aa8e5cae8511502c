"""States and configurations of models out of what the clients of tritonclient and our own return."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from alipes.compat.pytriton.parser import ModelConfigParser
from alipes.compat.pytriton.triton_model_config import TritonModelConfig
from alipes.types import ModelState

__all__ = [
    "ModelState",
    "config_of",
    "get_model_state",
    "json_form",
    "parse_grpc_response",
    "parse_http_response",
    "state_of",
]

States: TypeAlias = dict[tuple[str, str], ModelState]
"""By name and version."""


def parse_http_response(models: Iterable[Any]) -> States:
    """The states in a repository index that was read over HTTP: a list of documents, or of our own entries."""
    return _states((model if isinstance(model, Mapping) else _fields(model)) for model in models)


def parse_grpc_response(models: Iterable[Any]) -> States:
    """The states in a repository index that was read over gRPC: the entries of its message."""
    return _states(_fields(model) for model in models)


def get_model_state(client: Any, model_name: str, model_version: str | None = None) -> ModelState:
    """The state of a model; UNAVAILABLE where the server has no such model or version.

    Args:
        client: A client of `create_client_from_url` or of tritonclient.
        model_name: The model.
        model_version: Its version; the highest by default.
    """
    return state_of(client.get_model_repository_index(), model_name, model_version)


def state_of(index: Any, model_name: str, model_version: str | None) -> ModelState:
    """The state of a model in a repository index, as it was returned; arguments as those of `get_model_state`."""
    states = parse_http_response(index) if isinstance(index, list) else parse_grpc_response(index.models)
    versions = {version: state for (name, version), state in states.items() if name == model_name}
    wanted = model_version if model_version is not None else max(versions, key=int, default="")
    return versions.get(wanted, ModelState.UNAVAILABLE)


def json_form(client: Any) -> dict[str, Any]:
    """The option that has a client return a configuration as JSON; tritonclient over gRPC needs it."""
    return {"as_json": True} if "as_json" in inspect.signature(client.get_model_config).parameters else {}


def config_of(document: Mapping[str, Any]) -> TritonModelConfig:
    """A model's configuration as `get_model_config` of a client returned it: over gRPC in a document around it."""
    return ModelConfigParser.from_dict(document.get("config", document))


def _fields(entry: Any) -> dict[str, Any]:
    return {"name": entry.name, "version": entry.version, "state": entry.state}


def _states(entries: Iterable[Mapping[str, Any]]) -> States:
    """The states of those that have a version; what has no state yet is being loaded."""
    return {
        (entry["name"], entry["version"]): ModelState(entry.get("state") or ModelState.LOADING)
        for entry in entries
        if entry.get("version")
    }
