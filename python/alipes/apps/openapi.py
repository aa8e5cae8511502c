"""The OpenAPI document of a server's endpoints: each function as a path, with an example that works."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from alipes.apps.docs_page import Page

__all__ = ["openapi_document", "openapi_page"]

_ERROR: Final = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
    "title": "Error",
}
_WITHOUT_BODY: Final = ("GET", "DELETE")
_ERRORS: Final = {
    "400": "The body cannot be read.",
    "413": "The body is above a limit.",
    "415": "The function takes no body of this media type.",
    "422": "The body does not fit the function; the error names the place.",
    "500": "The function failed.",
}


def openapi_page(models: Iterable[Mapping[str, Any]], version: str) -> Page:
    """`/openapi.json` for models, each as `alipes.worker.apps.describe` says it.

    Args:
        models: The models; those without an endpoint are passed over.
        version: Release of the server.
    """
    return Page("/openapi.json", "application/json", json.dumps(openapi_document(models, version)).encode())


def openapi_document(models: Iterable[Mapping[str, Any]], version: str) -> dict[str, Any]:
    """The document, as OpenAPI 3.1 has it."""
    models = [model for model in models if model["has_endpoint"]]
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {"Error": _ERROR}
    for model in sorted(models, key=lambda one: str(one["name"])):
        methods = model.get("methods", ("POST",))
        name = quote(model["name"], safe="")
        paths[f"/{name}"] = {method.lower(): _endpoint(model, method, methods) for method in methods}
        if model["schema"]["tensors"] is not None and not model["is_stream"]:  # streams go over gRPC
            paths[f"/v2/models/{name}/infer"] = {"post": _tensors(model)}
        schemas |= model["schema"]["components"]
    paths["/v2/health/ready"] = {"get": _ready()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "alipes", "version": version, "description": "The functions of this server."},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _endpoint(model: Mapping[str, Any], method: str, methods: Sequence[str]) -> dict[str, Any]:
    schema = model["schema"]
    body = {} if method in _WITHOUT_BODY else {"requestBody": {"required": True, "content": schema["request"]}}
    return {
        "operationId": model["name"] if len(methods) == 1 else f"{model['name']}_{method.lower()}",
        "tags": ["functions"],
        "summary": schema["summary"] or model["name"],
        "description": schema["description"],
        "parameters": schema["parameters"],
        **body,
        "responses": {
            "200": {"description": schema["result"], "content": schema["response"]},
            **{status: _refused(text) for status, text in _ERRORS.items()},
        },
    }


def _tensors(model: Mapping[str, Any]) -> dict[str, Any]:
    """The same function over the V2 protocol."""
    body = {"schema": {"type": "object"}, "example": model["schema"]["tensors"]}
    return {
        "operationId": f"{model['name']}_infer",
        "tags": ["tensors"],
        "summary": f"{model['name']} with tensors",
        "description": "The V2 protocol of KServe and NVIDIA Triton.",
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "200": {"description": "The outputs.", "content": {"application/json": {"schema": {"type": "object"}}}},
            "400": _refused("The tensors do not fit."),
        },
    }


def _ready() -> dict[str, Any]:
    return {
        "operationId": "ready",
        "tags": ["server"],
        "summary": "Whether the server is ready",
        "responses": {"200": {"description": "It is."}, "503": {"description": "It is not."}},
    }


def _refused(text: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": text, "content": content}
