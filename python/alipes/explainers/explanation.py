"""One explanation: what each part of an input adds to a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Explanation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """An explanation of one output for one input.

    Attributes:
        attributions: What each part adds to the output: of a row, a number for each column; of a text, for each word;
            of a picture, for each cell of its grid, or for each value.
        base: The output without any of the parts. The attributions and the base sum to the prediction.
        prediction: The output for the input.
        target: Which output is explained, of several; 0 where there is one.
        is_approximate: Whether a limit ended the explanation before its last pass.
        passes: Estimates that are averaged.
        parts: Names of the parts, where they have some: columns, words.
    """

    attributions: npt.NDArray[np.float64]
    base: float
    prediction: float
    target: int
    is_approximate: bool
    passes: int
    parts: Sequence[str] = ()

    def document(self) -> dict[str, Any]:
        """The explanation as an answer of V1 has it."""
        found: dict[str, Any] = {
            "attributions": self.attributions.tolist(),
            "base": self.base,
            "prediction": self.prediction,
            "target": self.target,
            "approximate": self.is_approximate,
            "passes": self.passes,
        }
        return found | ({"parts": list(self.parts)} if self.parts else {})
