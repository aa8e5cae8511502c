"""The outputs of a model that explains inputs which all have as many attributions: their types, and their arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt

from alipes.explainers.explanation import Explanation

__all__ = ["arrays_of", "column_types"]

_NUMBER: Final = Annotated[np.ndarray, np.float64, (None,)]


def column_types(*sizes: int) -> dict[str, Any]:
    """The annotations of the outputs, by their names.

    Args:
        sizes: The sizes of the attributions of one input.
    """
    return {
        "attributions": Annotated[np.ndarray, np.float64, (None, *sizes)],
        "base": _NUMBER,
        "prediction": _NUMBER,
        "target": Annotated[np.ndarray, np.int64, (None,)],
        "approximate": Annotated[np.ndarray, np.bool_, (None,)],
    }


def arrays_of(explanations: Sequence[Explanation]) -> dict[str, npt.NDArray[Any]]:
    """Explanations as those outputs: a row for each explanation."""
    return {
        "attributions": np.stack([one.attributions for one in explanations]),
        "base": np.array([one.base for one in explanations]),
        "prediction": np.array([one.prediction for one in explanations]),
        "target": np.array([one.target for one in explanations], np.int64),
        "approximate": np.array([one.is_approximate for one in explanations]),
    }
