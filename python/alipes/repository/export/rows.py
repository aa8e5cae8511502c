"""Whether a function gives the same for a row whatever other rows are in the call, so that requests can be joined."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from alipes.repository.export.compare import find_difference

__all__ = ["why_not_joined"]

_ROWS: Final = 3

# What each row of a sample is multiplied by, so that rows differ much where a sample's are alike.
_FACTORS: Final = (1.0, -2.0, 0.5)


def why_not_joined(
    call: Callable[[Mapping[str, np.ndarray]], Sequence[np.ndarray]],
    samples: Mapping[str, np.ndarray],
    outputs: Sequence[str],
    tolerance: float | None,
) -> str | None:
    """Compare a call on several rows with calls on each of them.

    Args:
        call: Calls the function.
        samples: Its arguments, of three rows each.
        outputs: Names of what it returns.
        tolerance: Largest difference in units of the largest number; None for what the datatype allows.

    Returns:
        Why requests must not be joined to one call; None where they may be.
    """
    seen = False
    for arrays in _candidates(samples):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                joint = call(arrays)
                alone = [call({name: array[at : at + 1] for name, array in arrays.items()}) for at in range(_ROWS)]
        except Exception:
            # Numbers that the function does not take say nothing about its rows.
            continue
        if any(one.shape[:1] != (_ROWS,) for one in joint) or any(
            one.shape[:1] != (1,) for each in alone for one in each
        ):
            return "it returns another number of rows than it gets"
        parts = [np.concatenate(rows) for rows in zip(*alone, strict=True)]
        difference = find_difference(outputs, joint, parts, tolerance)
        if difference is not None:
            return f"what it returns for a row depends on the other rows of the call (output '{difference.output}')"
        seen = True
    return None if seen else "it could not be called on single rows"


def _candidates(samples: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """The samples themselves, then some whose rows differ more."""
    yield dict(samples)
    yield {name: _varied(array) for name, array in samples.items()}


def _varied(array: np.ndarray) -> np.ndarray:
    column = (-1, *(1,) * (array.ndim - 1))
    kind: Any = array.dtype
    if kind.kind == "f":
        shifted = array + np.linspace(0.25, 1.0, array.size).reshape(array.shape)
        varied: np.ndarray = (shifted * np.reshape(_FACTORS, column)).astype(kind)
        return varied
    if kind.kind in "iu":
        return np.random.default_rng(_ROWS).integers(0, 10, array.shape).astype(kind)
    if kind.kind == "O":
        repeated = [value * (at % _ROWS + 1) for at, value in enumerate(array.flat)]
        return np.array(repeated, object).reshape(array.shape)
    return array
