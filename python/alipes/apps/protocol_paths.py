"""The paths of V1 and V2 as OpenAPI describes them: those of each model, with examples, and those of the server."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from alipes.server.published import ServedModel

__all__ = ["ERROR", "model_paths", "refused", "server_paths"]

ERROR: Final = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
    "title": "Error",
}
"""The schema of a refusal."""

_MAX_EXAMPLE: Final = 256
"""Most values of a tensor that an example holds: a picture would be the largest part of the document."""

_BINARY_ALONE: Final = ("FP16", "BF16")
"""Datatypes that V2 does not have in JSON."""

_JSON: Final = "application/json"
_INSTANCES: Final = {
    "type": "object",
    "properties": {
        "instances": {"type": "array", "items": {}, "description": "Rows: one value, or an object of inputs, each."},
        "inputs": {"description": "Columns: the one input, or an object of inputs."},
        "signature_name": {"type": "string"},
    },
}
_TENSORS: Final = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "inputs": {"type": "array", "items": {"type": "object"}},
        "outputs": {"type": "array", "items": {"type": "object"}},
        "parameters": {"type": "object"},
    },
    "required": ["inputs"],
}


def refused(text: str) -> dict[str, Any]:
    """A response that is an error."""
    return {"description": text, "content": {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}}


def server_paths() -> dict[str, Any]:
    """The paths that are about no single model."""
    return {
        "/v1/models": {"get": _read("names", "server", "The names of the models")},
        "/v2": {"get": _read("metadata", "server", "The name and the extensions of the server")},
        "/v2/health/live": {"get": _read("live", "server", "Whether the server runs")},
        "/v2/health/ready": {
            "get": {
                "operationId": "ready",
                "tags": ["server"],
                "summary": "Whether the server is ready",
                "responses": {"200": {"description": "It is."}, "400": {"description": "It is not."}},
            }
        },
    }


def model_paths(models: Iterable[ServedModel]) -> dict[str, Any]:
    """The paths of each model.

    Args:
        models: The models; of each the version that serves is described.
    """
    paths: dict[str, Any] = {}
    for model in models:
        name, spec = model.name, model.spec
        endpoint = spec["endpoint"] or {}
        path = quote(name, safe="")
        paths[f"/v1/models/{path}"] = {"get": _read(f"{name}_state", name, f"Whether {name} is ready")}
        paths[f"/v2/models/{path}"] = {"get": _read(f"{name}_metadata", name, f"The inputs and outputs of {name}")}
        paths[f"/v2/models/{path}/ready"] = {"get": _read(f"{name}_ready", name, f"Whether {name} is ready, by status")}
        if endpoint.get("explain") or endpoint.get("whole"):
            paths[f"/v1/models/{path}:explain"] = {
                "post": _inference(f"{name}_explain", name, "explained", _INSTANCES, None)
            }
        if spec["decoupled"]:  # several responses go over gRPC
            continue
        rows = None if endpoint.get("whole") else _rows(spec)
        paths[f"/v1/models/{path}:predict"] = {
            "post": _inference(f"{name}_predict", name, "with plain values", _INSTANCES, rows)
        }
        tensors = None if endpoint.get("whole") else _tensors(spec)
        paths[f"/v2/models/{path}/infer"] = {
            "post": _inference(f"{name}_infer", name, "with tensors", _TENSORS, tensors)
        }
    return paths


def _read(operation: str, tag: str, summary: str) -> dict[str, Any]:
    answer = {"description": "It is known.", "content": {_JSON: {"schema": {}}}}
    return {"operationId": operation, "tags": [tag], "summary": summary, "responses": {"200": answer}}


def _inference(operation: str, name: str, how: str, schema: Mapping[str, Any], example: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema}
    if example is not None:
        body["example"] = example
    return {
        "operationId": operation,
        "tags": [name],
        "summary": f"{name} {how}",
        "requestBody": {"required": True, "content": {_JSON: body}},
        "responses": {
            "200": {"description": "The answer.", "content": {_JSON: {"schema": {"type": "object"}}}},
            "400": refused("The body cannot be read, or does not fit the model."),
            "404": refused("There is no such model any more."),
            "503": refused("The model is not ready."),
        },
    }


def _needed(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in spec["inputs"] if not one["optional"]]


def _rows(spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """An example of V1 with one instance; None where it would be long, or the model takes nothing."""
    inputs = _needed(spec)
    ports = [*spec["inputs"], *spec["outputs"]]
    # As the data plane reads instances: a row where the first dimension of everything is open.
    has_rows = spec["max_batch_size"] == 0 and all(one["dims"][:1] == [-1] for one in ports)
    values = {one["name"]: _nested(one["datatype"], one["dims"][1:] if has_rows else one["dims"]) for one in inputs}
    if not values or None in values.values():
        return None
    return {"instances": [values if len(values) > 1 else next(iter(values.values()))]}


def _tensors(spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """An example of V2; None where JSON has none, it would be long, or the model takes nothing."""
    found = []
    for one in _needed(spec):
        shape = [abs(size) for size in ([1] if spec["max_batch_size"] > 0 else []) + one["dims"]]
        count = math.prod(shape)
        if count > _MAX_EXAMPLE or one["datatype"] in _BINARY_ALONE:
            return None
        data = [_value(one["datatype"])] * count
        found.append({"name": one["name"], "datatype": one["datatype"], "shape": shape, "data": data})
    return {"inputs": found} if found else None


def _nested(datatype: str, dims: Iterable[int]) -> Any:
    """A value of these sizes, those that are open being 1; None where it would be long."""
    sizes = [abs(size) for size in dims]
    if math.prod(sizes) > _MAX_EXAMPLE:
        return None
    value: Any = _value(datatype)
    for size in reversed(sizes):
        value = [value] * size
    return value


def _value(datatype: str) -> Any:
    if datatype == "BYTES":
        return "text"
    if datatype == "BOOL":
        return False
    return 0.0 if datatype.startswith(("FP", "BF")) else 0
