"""A short stretch of a window, and windows made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from alipes._core import LoadTestRecord
from alipes.loadtest import Window

__all__ = ["Slice", "joined"]


@dataclass(frozen=True, slots=True)
class Slice:
    """What one cut of the engine showed.

    Attributes:
        client: Its figures; its length is not known.
    """

    client: Window

    @classmethod
    def read(cls, record: LoadTestRecord) -> Slice:
        """A cut."""
        return cls(Window.read(record, 1.0))


def joined(slices: Sequence[Slice], seconds: float) -> Window:
    """The figures of a window of this length."""
    cores = sum(part.client.tester_cores for part in slices) / seconds
    return replace(Window.merged(part.client for part in slices), seconds=seconds, tester_cores=cores)
