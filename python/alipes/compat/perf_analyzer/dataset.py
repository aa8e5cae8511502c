"""What is sent: rows of inputs in steps, and what may be expected of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Dataset", "Step"]

Array: TypeAlias = npt.NDArray[Any]
Step: TypeAlias = Mapping[str, Array]
"""Arrays by the name of their input or output, without the batch axis."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Steps of data.

    Attributes:
        streams: Steps that belong together, such as those of a sequence.
        expected: Of each step, in the same streams: outputs that it has to have; empty where none are known.
        message: What was read, in words; empty where nothing was.
    """

    streams: Sequence[Sequence[Step]]
    expected: Sequence[Sequence[Step]] = ()
    message: str = ""

    def batches(self, rows: int, has_batch_axis: bool) -> list[tuple[Step, Step]]:
        """Requests of so many rows, each with what is expected: steps in turn, until all have been sent.

        Args:
            rows: Steps in each request.
            has_batch_axis: Whether the arrays get one; otherwise a request is one step.
        """
        steps = [step for stream in self.streams for step in stream]
        known = [step for stream in self.expected for step in stream] or [{} for _ in steps]
        if not has_batch_axis:
            return list(zip(steps, known, strict=True))
        count = len(steps) // np.gcd(len(steps), rows)  # each step has then been in each place
        groups = [[(first * rows + row) % len(steps) for row in range(rows)] for first in range(int(count))]
        return [
            (_stacked([steps[place] for place in group]), _stacked([known[place] for place in group]))
            for group in groups
        ]


def _stacked(steps: Sequence[Step]) -> Step:
    names = [name for name in steps[0] if all(name in step for step in steps)]
    return {name: np.stack([step[name] for step in steps]) for name in names}
