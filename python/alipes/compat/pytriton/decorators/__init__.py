"""The decorators of inference functions: how a list of requests becomes the arguments of a function, and back."""

from __future__ import annotations

from alipes.compat.pytriton.context import ModelConfigDict, TritonContext, get_model_config, get_triton_context
from alipes.compat.pytriton.decorators.batching import batch, first_value, pad_batch, sample, triton_context
from alipes.compat.pytriton.decorators.grouping import group_by_keys, group_by_values
from alipes.compat.pytriton.decorators.optionals import fill_optionals
from alipes.compat.pytriton.decorators.outputs import (
    InferenceRequest,
    InferenceRequests,
    InferenceResult,
    InferenceResults,
    InputNames,
    convert_output,
    get_inference_request_batch_size,
)
from alipes.compat.pytriton.decorators.padder import ConstantPadder

__all__ = [
    "ConstantPadder",
    "InferenceRequest",
    "InferenceRequests",
    "InferenceResult",
    "InferenceResults",
    "InputNames",
    "ModelConfigDict",
    "TritonContext",
    "batch",
    "convert_output",
    "fill_optionals",
    "first_value",
    "get_inference_request_batch_size",
    "get_model_config",
    "get_triton_context",
    "group_by_keys",
    "group_by_values",
    "pad_batch",
    "sample",
    "triton_context",
]
