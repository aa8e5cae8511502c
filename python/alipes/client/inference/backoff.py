"""How long to wait before something is tried again: longer each time, and not in step with others."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double.

    Attributes:
        first_s: The first pause.
        most_s: The longest.
        jitter: Part of each pause that chance decides, so that clients do not come back all at once.
    """

    first_s: float = 0.05
    most_s: float = 2.0
    jitter: float = 0.5

    def pause_s(self, attempt: int, told_s: float | None = None) -> float:
        """The pause behind an attempt, counted from 1; never shorter than the server has asked for."""
        pause_s = min(self.most_s, self.first_s * 2.0 ** min(attempt - 1, 32))
        return max(told_s or 0.0, pause_s * (1 - self.jitter * random.random()))
