"""The OpenAPI document of a server: each function as a path, with an example that works, and the models beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from alipes.apps.docs_page import Page
from alipes.apps.protocol_paths import ERROR, model_paths, refused, server_paths
from alipes.server.published import ServedModel

__all__ = ["openapi_document", "openapi_page"]

_WITHOUT_BODY: Final = ("GET", "DELETE")
_ERRORS: Final = {
    "400": "The body cannot be read.",
    "413": "The body is above a limit.",
    "415": "The function takes no body of this media type.",
    "422": "The body does not fit the function; the error names the place.",
    "500": "The function failed.",
}

_SCHEMES: Final = {
    "Bearer": {"type": "http", "scheme": "bearer"},
    "X-Api-Key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
}
"""How a request shows its key: either way will do."""


def openapi_page(
    functions: Iterable[Mapping[str, Any]], models: Iterable[ServedModel], version: str, *, has_keys: bool = False
) -> Page:
    """`/openapi.json` of a server.

    Args:
        functions: The functions, each as `alipes.worker.apps.describe` says it; those without an endpoint are passed
            over.
        models: All other models.
        version: Release of the server.
        has_keys: Whether requests must show a key.
    """
    document = openapi_document(functions, models, version)
    if has_keys:
        document["components"]["securitySchemes"] = _SCHEMES
        document["security"] = [{name: []} for name in _SCHEMES]
    return Page("/openapi.json", "application/json", json.dumps(document).encode())


def openapi_document(
    functions: Iterable[Mapping[str, Any]], models: Iterable[ServedModel], version: str
) -> dict[str, Any]:
    """The document, as OpenAPI 3.1 has it."""
    functions = [function for function in functions if function["has_endpoint"]]
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {"Error": ERROR}
    for function in sorted(functions, key=lambda one: str(one["name"])):
        methods = function.get("methods", ("POST",))
        name = quote(function["name"], safe="")
        paths[f"/{name}"] = {method.lower(): _endpoint(function, method, methods) for method in methods}
        if function["schema"]["tensors"] is not None and not function["is_stream"]:  # streams go over gRPC
            paths[f"/v2/models/{name}/infer"] = {"post": _tensors(function)}
        schemas |= function["schema"]["components"]
        if (explanation := function.get("explanation")) is not None:
            paths[f"/v1/models/{name}:explain"] = {"post": _explanation(function["name"], explanation)}
            schemas |= explanation["components"]
    paths |= model_paths(models) | server_paths()
    return {
        "openapi": "3.1.0",
        "info": {"title": "alipes", "version": version, "description": "The functions and models of this server."},
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
            **{status: refused(text) for status, text in _ERRORS.items()},
        },
    }


def _explanation(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a method that explains takes over V1."""
    content = {"application/json": schema["request"]["application/json"]}
    return {
        "operationId": f"{name}_explain",
        "tags": ["functions"],
        "summary": schema["summary"] or f"{name} explained",
        "description": schema["description"],
        "requestBody": {"required": True, "content": content},
        "responses": {
            "200": {"description": schema["result"], "content": schema["response"]},
            "400": refused("The body does not fit the method; the error names the place."),
            "500": refused("The method failed."),
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
            "400": refused("The tensors do not fit."),
        },
    }
