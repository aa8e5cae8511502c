"""The OpenAPI document of a server's apps: each function as a path, with an example that works."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from alipes.apps.description import Description
from alipes.apps.docs_page import Page

__all__ = ["openapi_document", "openapi_page"]

_ERROR: Final = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
    "title": "Error",
}
_ERRORS: Final = {
    "400": "The body cannot be read.",
    "413": "The body is above a limit.",
    "415": "The function takes no body of this media type.",
    "422": "The body does not fit the function; the error names the place.",
    "500": "The function failed.",
}


def openapi_page(descriptions: Iterable[Description], version: str) -> Page:
    """`/openapi.json` for apps.

    Args:
        descriptions: The apps.
        version: Release of the server.
    """
    return Page("/openapi.json", "application/json", json.dumps(openapi_document(descriptions, version)).encode())


def openapi_document(descriptions: Iterable[Description], version: str) -> dict[str, Any]:
    """The document, as OpenAPI 3.1 has it."""
    models = [model for description in descriptions for model in description.models if model["has_endpoint"]]
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {"Error": _ERROR}
    for model in sorted(models, key=lambda one: str(one["name"])):
        paths[f"/{model['name']}"] = {"post": _endpoint(model)}
        if model["schema"]["tensors"] is not None and not model["is_stream"]:  # streams go over gRPC
            paths[f"/v2/models/{model['name']}/infer"] = {"post": _tensors(model)}
        schemas |= model["schema"]["components"]
    paths["/v2/health/ready"] = {"get": _ready()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "alipes", "version": version, "description": "The functions of this server."},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _endpoint(model: Mapping[str, Any]) -> dict[str, Any]:
    schema = model["schema"]
    return {
        "operationId": model["name"],
        "tags": ["functions"],
        "summary": schema["summary"] or model["name"],
        "description": schema["description"],
        "parameters": schema["parameters"],
        "requestBody": {"required": True, "content": schema["request"]},
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
