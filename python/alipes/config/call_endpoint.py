"""Reads the parameter `endpoint` of a Python model: plain HTTP requests to `/<name>` reach the model as calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypedDict

from alipes._core import reserved_names
from alipes.config.nearest import nearest
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["METHODS", "PARAMETER", "RESERVED_NAMES", "CallEndpoint", "has_call_endpoint", "read_call_endpoint"]

PARAMETER: Final = "endpoint"

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""Methods that an endpoint may take."""

RESERVED_NAMES: Final = tuple(reserved_names())
"""Names of models that can have no endpoint: the paths are the server's own."""

_KEY: Final = f"parameters.{PARAMETER}"


class CallEndpoint(TypedDict):
    """What the data plane has to know of an endpoint.

    Attributes:
        methods: Some of `METHODS`; none where only requests for explanations are calls.
        stream: Whether a request has any number of responses.
        head: Whether the model looks at method, query and headers. If not, a JSON body comes by itself.
        whole: Whether requests of the inference protocols that name the model are calls too, whatever they hold.
        explain: Whether requests of V1 for explanations are calls too.
        predict: Whether requests of V1 for predictions are calls too.
    """

    methods: list[str]
    stream: bool
    head: bool
    whole: bool
    explain: bool
    predict: bool


def has_call_endpoint(config: ModelConfig) -> bool:
    """Whether the parameter is given. Any text but a JSON object is the model's own, as parameters always were."""
    return PARAMETER in config.parameters and config.parameters[PARAMETER].string_value.lstrip().startswith("{")


def read_call_endpoint(config: ModelConfig) -> CallEndpoint | None:
    """The endpoint that a complete configuration asks for.

    Raises:
        ConfigError: If the object has another form, or the model can have no endpoint: for its name, its sequences, or
            its transaction policy.
    """
    if not has_call_endpoint(config):
        return None
    endpoint = _parse(config.parameters[PARAMETER].string_value, config.name)
    if config.name in RESERVED_NAMES:
        raise _bad(config.name, f"'/{config.name}' is a path of the server's own: give the model another name")
    if config.HasField("sequence_batching"):
        raise _bad(config.name, "plain requests belong to no sequence: remove sequence_batching or the endpoint")
    decoupled = config.model_transaction_policy.decoupled
    if endpoint["stream"] != decoupled:
        wanted = "false" if endpoint["stream"] else "true"
        raise _bad(
            config.name,
            f"'stream' is {str(endpoint['stream']).lower()}, but the model_transaction_policy says decoupled: "
            f"{str(decoupled).lower()}; set 'stream' to {wanted}, or change the policy",
        )
    return endpoint


def _parse(text: str, name: str) -> CallEndpoint:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(name, f"it is no JSON object: {error}") from error
    members: Mapping[str, Any] = document
    for member in members:
        if member not in CallEndpoint.__annotations__:
            close = nearest(member, tuple(CallEndpoint.__annotations__))
            hint = f"; did you mean '{close}'?" if close else ""
            raise _bad(name, f"it has an unknown member '{member}'{hint}")
    methods, stream = members.get("methods", ["POST"]), members.get("stream", False)
    some = bool(methods) or members.get("explain") is True
    if not (isinstance(methods, list) and some and all(method in METHODS for method in methods)):
        raise _bad(name, f"'methods' must be a list of some of {', '.join(METHODS)}, got {json.dumps(methods)}")
    found: CallEndpoint = {
        "methods": list(dict.fromkeys(methods)),
        "stream": stream,
        "head": members.get("head", True),
        "whole": members.get("whole", False),
        "explain": members.get("explain", False),
        "predict": members.get("predict", False),
    }
    for member, value in found.items():
        if member != "methods" and not isinstance(value, bool):
            raise _bad(name, f"'{member}' must be true or false, got {json.dumps(value)}")
    return found


def _bad(name: str, what: str) -> ConfigError:
    return ConfigError(f"parameter '{PARAMETER}' of model '{name}': {what}", key=_KEY)
