"""Back-off: pauses between attempts that grow and vary at random, so that clients do not retry together."""

from __future__ import annotations

import random
from dataclasses import dataclass

from alipes.client.backoff import doubled_s

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double with each attempt.

    Attributes:
        first_s: The first pause.
        most_s: The longest.
        jitter: Share of each pause that is random.
    """

    first_s: float = 0.05
    most_s: float = 2.0
    jitter: float = 0.5

    def pause_s(self, attempt: int, least_s: float | None = None) -> float:
        """The pause after an attempt, counted from 1; at least `least_s`, the server's hint."""
        pause_s = doubled_s(self.first_s, self.most_s, attempt - 1)
        return max(least_s or 0.0, pause_s * (1 - self.jitter * random.random()))
