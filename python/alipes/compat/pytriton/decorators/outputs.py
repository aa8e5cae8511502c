"""What an inference function takes and returns: arrays by name, or outputs in the order of the declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy.typing as npt

from alipes.compat.pytriton.context import get_model_config
from alipes.compat.pytriton.exceptions import PyTritonValidationError
from alipes.compat.pytriton.triton_model_config import TritonModelConfig

__all__ = [
    "SPECIAL_KEYS",
    "Array",
    "InferenceRequest",
    "InferenceRequests",
    "InferenceResult",
    "InferenceResults",
    "InputNames",
    "convert_output",
    "get_inference_request_batch_size",
]

Array: TypeAlias = npt.NDArray[Any]
InputNames: TypeAlias = list[str]
InferenceRequest: TypeAlias = dict[str, Array]
InferenceRequests: TypeAlias = list[InferenceRequest] | tuple[InferenceRequest, ...]
InferenceResult: TypeAlias = dict[str, Array]
InferenceResults: TypeAlias = list[InferenceResult] | tuple[InferenceResult, ...]

SPECIAL_KEYS: Final = ("__triton_context__",)
"""Arguments of inference functions that are no inputs."""


def get_inference_request_batch_size(inference_request: Mapping[str, Array]) -> int:
    """The number of rows of a request: of its first input."""
    rows: int = next(iter(inference_request.values())).shape[0]
    return rows


def convert_output(
    outputs: Any, wrapped: Any = None, instance: Any = None, model_config: TritonModelConfig | None = None
) -> dict[str, Array]:
    """Outputs by name, out of a dictionary or of a list in the order of the declaration.

    Raises:
        PyTritonValidationError: If it is neither, or the list is of another length than the declaration.
    """
    if isinstance(outputs, dict):
        return outputs
    if not isinstance(outputs, (list, tuple)):
        raise PyTritonValidationError(f"Unsupported output type {type(outputs)}.")
    declared = (model_config or get_model_config(wrapped, instance)).outputs or ()
    if len(outputs) != len(declared):
        raise PyTritonValidationError("Outputs length different than config outputs length")
    return {spec.name: output for spec, output in zip(declared, outputs, strict=True)}
