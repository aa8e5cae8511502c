"""The module `c_python_backend_utils`: the names of Triton's compiled part, which some models import directly."""

from __future__ import annotations

from alipes._core import (
    InferenceRequest,
    InferenceResponse,
    InferenceResponseSender,
    InferenceTrace,
    PreferredMemory,
    ResponseIterator,
    Tensor,
    TritonError,
    TritonModelException,
)
from alipes.worker.triton.logger import Logger
from alipes.worker.triton.memory import TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_GPU, MemoryType
from alipes.worker.triton.metrics import Metric, MetricFamily, MetricKind
from alipes.worker.triton.models import is_model_ready, load_model, unload_model

__all__ = [
    "TRITONSERVER_MEMORY_CPU",
    "TRITONSERVER_MEMORY_GPU",
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "InferenceTrace",
    "Logger",
    "MemoryType",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "PreferredMemory",
    "ResponseIterator",
    "Tensor",
    "TritonError",
    "TritonModelException",
    "is_model_ready",
    "load_model",
    "unload_model",
]
