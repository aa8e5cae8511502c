"""A model's configuration as PyTriton's clients and decorators see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alipes.compat.pytriton.settings import DeviceKind, DynamicBatcher, ModelWarmup

__all__ = ["ResponseCache", "TensorSpec", "TritonModelConfig"]


@dataclass
class ResponseCache:
    """Whether answers may come from the server's cache."""

    enable: bool


@dataclass
class TensorSpec:
    """A tensor of the model: name, sizes without the batch dimension, type of the elements."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    optional: bool | None = False


@dataclass
class TritonModelConfig:
    """The configuration of a model on its server.

    Attributes:
        model_name: Its name.
        model_version: Its version.
        max_batch_size: Most rows of an execution; 0 without a batch dimension.
        batching: Whether requests have a batch dimension.
        batcher: How batches are formed.
        instance_group: Number of instances by device.
        decoupled: Whether a request may have any number of responses.
        backend_parameters: Parameters of the configuration.
        inputs: Its inputs.
        outputs: Its outputs.
        response_cache: Whether answers may come from the server's cache.
        model_warmup: Requests that are made before the model is served.
    """

    model_name: str
    model_version: int = 1
    max_batch_size: int = 4
    batching: bool = True
    batcher: DynamicBatcher | None = None
    instance_group: dict[DeviceKind, int | None] = field(default_factory=dict)
    decoupled: bool = False
    backend_parameters: dict[str, str] = field(default_factory=dict)
    inputs: Sequence[TensorSpec] | None = None
    outputs: Sequence[TensorSpec] | None = None
    response_cache: ResponseCache | None = None
    model_warmup: list[ModelWarmup] | None = None

    @property
    def backend(self) -> str:
        """The backend: PyTriton's models are Python."""
        return "python"
