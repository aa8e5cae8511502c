"""The GPUs that the instances of a model can have."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

__all__ = ["NO_GPUS", "OLDEST_GPU", "Gpu", "GpuUse", "Gpus", "count_gpus_as_listed", "usable_gpus"]

OLDEST_GPU: Final = (6, 0)
"""The compute capability that a GPU needs, as in Triton where no flag says otherwise."""


class Gpu(Protocol):
    """A GPU of the machine, as `alipes._core.gpus` tells of it."""

    @property
    def index(self) -> int:
        """Its number among those that this process may use, as CUDA counts them."""
        ...

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Its generation: major and minor number."""
        ...


class GpuUse(Enum):
    """Which instances of a backend run on a GPU."""

    NEVER = "never"
    """None: it computes on the CPU whatever the configuration says."""

    EXPLICIT = "explicit"
    """Those of KIND_GPU, and those of KIND_AUTO whose group names GPUs."""

    PREFERRED = "preferred"
    """Those of KIND_AUTO as well, where there is a GPU."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs that the instances of a model can have.

    Attributes:
        numbers: Their numbers, ascending.
        use: Which of the instances its backend runs on one.
    """

    numbers: tuple[int, ...] = ()
    use: GpuUse = GpuUse.EXPLICIT

    def has(self, numbers: Iterable[int]) -> bool:
        """Whether there is any GPU, and each of these is one."""
        return bool(self.numbers) and all(number in self.numbers for number in numbers)


NO_GPUS: Final = Gpus()
"""Those of a machine that has none."""


def usable_gpus(machine: Iterable[Gpu], use: GpuUse) -> Gpus:
    """Those of the machine's GPUs that a backend can run instances on.

    Args:
        machine: The GPUs that this process may use.
        use: Which instances the backend runs on a GPU.
    """
    numbers = (gpu.index for gpu in machine if gpu.compute_capability >= OLDEST_GPU)
    return Gpus(() if use is GpuUse.NEVER else tuple(sorted(numbers)), use)


def count_gpus_as_listed() -> None:
    """Makes CUDA count the GPUs of this process and its children in PCI order, as the list of GPUs does.

    To be called before CUDA is, and early: another thread must not read the environment at the same time. Without this
    CUDA counts the fastest first.

    Source: CUDA C++ Programming Guide, "CUDA Environment Variables".
    """
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
