"""The machine that trials run on: results of one say little of another."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from alipes.config.memory_limit import memory_limit_bytes

__all__ = ["Machine"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides how fast a server is.

    Attributes:
        processor: As the processor calls itself.
        cores: That this process may use.
        memory_bytes: That this process may use.
    """

    processor: str
    cores: int
    memory_bytes: int

    @classmethod
    def here(cls) -> Self:
        """This one."""
        return cls(_processor(), len(os.sched_getaffinity(0)), memory_limit_bytes())

    @property
    def key(self) -> str:
        """Text that equal machines share; memory counts in whole GiB, of which a kernel takes a little."""
        return f"{self.processor}, {self.cores} cores, {round(self.memory_bytes / 2**30)} GiB"

    def to_document(self) -> dict[str, Any]:
        """Its attributes, for JSON."""
        return asdict(self)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names and names[0] else platform.machine()
