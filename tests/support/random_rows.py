"""Holds what a proof says of a random model against its answers to rows that the proof has not seen."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from alipes.row_proof import RowProof

__all__ = ["Found", "differs"]

LARGEST = 1e-3
"""Difference in units of the largest answer that is no rounding."""


def differs(run: Any, number: int, width: int) -> bool:
    """Whether rows that the proof has not seen are answered otherwise together than alone."""
    random = np.random.default_rng([number, 1])
    for scale in (0.3, 3.0):
        rows = (random.normal(size=(4, width)) * scale).astype("f4")
        together = run({"x": rows})["y"]
        alone = np.concatenate([run({"x": rows[at : at + 1]})["y"] for at in range(len(rows))])
        largest = np.abs(alone[np.isfinite(alone)]).max(initial=0)
        if together.shape != alone.shape:
            return True
        if not np.allclose(together, alone, rtol=0, atol=largest * LARGEST, equal_nan=True):
            return True
    return False


class Found:
    """What the proofs of many random models said."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._missed = 0

    def count(self, proof: RowProof, *, mixes: bool) -> None:
        """Counts a proof of a model that has, or has not, a step over rows."""
        self._outcomes[proof.outcome] += 1
        self._missed += not proof.holds and not mixes

    def check(self, models: int) -> None:
        """Holds the counts: a proof that refuses everything would be right, and of no use."""
        assert self._outcomes.total() == models
        assert self._missed <= models // 100
        assert self._outcomes["proved"] >= models * 0.45
        assert self._outcomes["refuted"] >= models * 0.3
