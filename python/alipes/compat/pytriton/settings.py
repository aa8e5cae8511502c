"""What a PyTriton script says about a model: its tensors, its batching, its queues, its warm-up."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "DeviceKind",
    "DynamicBatcher",
    "ModelConfig",
    "ModelWarmup",
    "QueuePolicy",
    "Tensor",
    "TimeoutAction",
    "WarmupInput",
]


class DeviceKind(enum.Enum):
    """Where the instances of a model run."""

    KIND_AUTO = "KIND_AUTO"
    KIND_CPU = "KIND_CPU"
    KIND_GPU = "KIND_GPU"


class TimeoutAction(enum.Enum):
    """What happens to a request that has waited too long: it is refused, or goes behind the others."""

    REJECT = "REJECT"
    DELAY = "DELAY"


@dataclass
class QueuePolicy:
    """Limits of a model's queue.

    Attributes:
        timeout_action: What happens after the time-out.
        default_timeout_microseconds: Longest wait in the queue; 0 is no limit.
        allow_timeout_override: Whether a request may bring a time-out of its own.
        max_queue_size: Most requests that wait; 0 is no limit.
    """

    timeout_action: TimeoutAction = TimeoutAction.REJECT
    default_timeout_microseconds: int = 0
    allow_timeout_override: bool = False
    max_queue_size: int = 0


@dataclass
class DynamicBatcher:
    """How the server forms batches.

    Attributes:
        max_queue_delay_microseconds: Longest wait for company.
        preferred_batch_size: Sizes at which a batch runs at once.
        preserve_ordering: Whether responses keep the order of their requests.
        priority_levels: Number of priority levels; 0 is none.
        default_priority_level: The level of requests that name none.
        default_queue_policy: Limits of the queue.
        priority_queue_policy: Limits by level.
    """

    max_queue_delay_microseconds: int = 0
    preferred_batch_size: list[int] | None = None
    preserve_ordering: bool = False
    priority_levels: int = 0
    default_priority_level: int = 0
    default_queue_policy: QueuePolicy | None = None
    priority_queue_policy: dict[int, QueuePolicy] | None = None


@dataclass
class WarmupInput:
    """An input of a warm-up request; exactly what one of the three sources gives.

    Attributes:
        dtype: Type of its elements.
        shape: Its sizes without the batch dimension.
        zero_data: Zeroes.
        random_data: Random values.
        input_data_file: A file of numpy's format.
    """

    dtype: Any
    shape: Sequence[int]
    zero_data: bool | None = False
    random_data: bool | None = False
    input_data_file: str | None = None


@dataclass
class ModelWarmup:
    """Requests with which a model is called before it is served.

    Attributes:
        name: A name for log lines.
        batch_size: Rows of each request.
        inputs: Inputs by name.
        count: How often.
    """

    name: str
    batch_size: int
    inputs: dict[str, WarmupInput]
    count: int


@dataclass(frozen=True)
class Tensor:
    """An input or output of a model.

    Attributes:
        shape: Its sizes without the batch dimension; -1 is any.
        dtype: Type of its elements: a type of numpy, or `object` and `bytes` for strings.
        name: Its name; numbered names are given where it is None.
        optional: Whether requests may leave it out; of inputs alone.
    """

    shape: tuple[int, ...]
    dtype: Any
    name: str | None = None
    optional: bool | None = False

    def __post_init__(self) -> None:
        """Takes the type out of a dtype: `array.dtype` may be given."""
        if isinstance(self.dtype, np.dtype):
            object.__setattr__(self, "dtype", self.dtype.type)


@dataclass
class ModelConfig:
    """How a bound model is served.

    Attributes:
        batching: Whether requests have a batch dimension.
        max_batch_size: Most rows of an execution.
        batcher: How batches are formed.
        response_cache: Whether answers may come from the server's cache.
        decoupled: Whether a request may have any number of responses.
        model_warmup: Requests that are made before the model is served.
    """

    batching: bool = True
    max_batch_size: int = 4
    batcher: DynamicBatcher = field(default_factory=DynamicBatcher)
    response_cache: bool = False
    decoupled: bool = False
    model_warmup: list[ModelWarmup] | None = None
