"""Parameters of requests, tensors and responses: plain values over HTTP, messages over gRPC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alipes.compat.kserve.errors import InvalidInput
from alipes.compat.kserve.messages import message_class

__all__ = ["is_message", "to_grpc_parameters", "to_http_parameters", "value_of"]


def to_grpc_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as messages.

    Raises:
        InvalidInput: If one is neither a text nor a truth value nor an integer.
    """
    made = message_class("InferParameter")
    messages = {}
    for name, value in parameters.items():
        if isinstance(value, made):
            messages[name] = value
        elif isinstance(value, str):
            messages[name] = made(string_param=value)
        elif isinstance(value, bool):
            messages[name] = made(bool_param=value)
        elif isinstance(value, int):
            messages[name] = made(int64_param=value)
        else:
            raise InvalidInput(f"to_grpc: invalid parameter value: {value}")
    return messages


def to_http_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as plain values."""
    values = {name: value_of(value) for name, value in parameters.items()}
    return {name: value for name, value in values.items() if value is not None}


def value_of(parameter: Any) -> Any:
    """The value of a parameter, which may be a message; None for a message without one."""
    if not is_message(parameter):
        return parameter
    field = parameter.WhichOneof("parameter_choice")
    return None if field is None else getattr(parameter, field)


def is_message(parameter: Any) -> bool:
    """Whether a parameter came over gRPC. Scripts may have made it with another package's class."""
    return type(parameter).__name__ == "InferParameter" and hasattr(parameter, "WhichOneof")
