"""How long frames took from their arrival to their answers."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

__all__ = ["Latencies"]

_MOST: Final = 86_400
"""Frames that count: those of a day."""


class Latencies:
    """The latencies of the last frames."""

    def __init__(self) -> None:
        """None yet."""
        self._found: deque[float] = deque(maxlen=_MOST)
        self.last_s: float | None = None

    def add(self, latency_s: float) -> None:
        """Adds that of a frame."""
        self._found.append(latency_s)
        self.last_s = latency_s

    def percentile_s(self, percent: float) -> float | None:
        """The latency that so many percent do not exceed; `None` where there is none."""
        return float(np.percentile(list(self._found), percent)) if self._found else None
