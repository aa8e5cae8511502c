"""Finding a tensor or its declaration by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse, Tensor

__all__ = [
    "get_input_config_by_name",
    "get_input_tensor_by_name",
    "get_output_config_by_name",
    "get_output_tensor_by_name",
    "using_decoupled_model_transaction_policy",
]


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Tensor | None:
    """The input with a name; ``None`` where the request has none."""
    return _named(inference_request.inputs(), name)


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Tensor | None:
    """The output with a name; ``None`` where the response has none."""
    return _named(inference_response.output_tensors(), name)


def get_input_config_by_name(model_config: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """What a configuration says of an input; ``None`` where it has none of that name."""
    return _declared(model_config.get("input", ()), name)


def get_output_config_by_name(model_config: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """What a configuration says of an output; ``None`` where it has none of that name."""
    return _declared(model_config.get("output", ()), name)


def using_decoupled_model_transaction_policy(model_config: Mapping[str, Any]) -> bool:
    """Whether a configuration lets a request have any number of responses."""
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))


def _named(tensors: Iterable[Tensor], name: str) -> Tensor | None:
    for tensor in tensors:
        if tensor.name() == name:
            return tensor
    return None


def _declared(tensors: Iterable[dict[str, Any]], name: str) -> dict[str, Any] | None:
    for tensor in tensors:
        if tensor["name"] == name:
            return tensor
    return None
