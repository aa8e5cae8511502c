"""Estimates of attributions, one pass after the other, until all are there or a limit is reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alipes.explainers.limits import LimitReached, Meter

__all__ = ["Estimate", "averaged"]


@dataclass(slots=True)
class Estimate:
    """What the passes over one input have found.

    Attributes:
        attributions: The mean of the passes.
        passes: Complete passes.
    """

    attributions: npt.NDArray[np.float64]
    passes: int


_Array = npt.NDArray[np.float64]


def averaged(inputs: Sequence[object], one_pass: Callable[[int, int], _Array], meter: Meter) -> list[Estimate]:
    """The estimates for all inputs of a request. Each input has its first pass before any has its second.

    Args:
        inputs: The inputs.
        one_pass: An estimate for an input, by its position and the number of the pass.
        meter: Ends the passes where it raises.

    Raises:
        DeadlineExceeded: If an input has no complete pass, or too few where the limits want all of them.
    """
    limits = meter.limits
    found: list[Estimate | None] = [None] * len(inputs)
    complete = 0
    try:
        for number in range(limits.passes):
            for at in range(len(inputs)):
                found[at] = _with(found[at], one_pass(at, number))
            complete += 1
    except LimitReached:
        if limits.on_limit == "error" or any(one is None for one in found):
            raise meter.exceeded(complete) from None
    return [one for one in found if one is not None]


def _with(estimate: Estimate | None, attributions: npt.NDArray[np.float64]) -> Estimate:
    if estimate is None:
        return Estimate(attributions, 1)
    passes = estimate.passes + 1
    return Estimate(estimate.attributions + (attributions - estimate.attributions) / passes, passes)
