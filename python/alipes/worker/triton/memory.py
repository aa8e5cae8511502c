"""Where a model would like to find the answers to its calls."""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["TRITONSERVER_MEMORY_CPU", "TRITONSERVER_MEMORY_GPU", "MemoryType"]


class MemoryType(Enum):
    """A kind of memory; the values are Triton's."""

    TRITONSERVER_MEMORY_CPU = 0
    TRITONSERVER_MEMORY_GPU = 2


TRITONSERVER_MEMORY_CPU: Final = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU: Final = MemoryType.TRITONSERVER_MEMORY_GPU
