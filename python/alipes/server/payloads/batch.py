"""Payloads that are sent together."""

from __future__ import annotations

import time
from dataclasses import dataclass

from alipes.server.payloads.sink import Payload

__all__ = ["Batch", "BatchLimits"]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch is sent: as soon as one of these is reached.

    Attributes:
        size: Payloads.
        size_bytes: Bytes of them.
        age_s: Seconds since its first payload came.
    """

    size: int
    size_bytes: int
    age_s: float


class Batch:
    """Payloads that wait for others."""

    def __init__(self, limits: BatchLimits) -> None:
        """Begins without any."""
        self._limits = limits
        self._payloads: list[Payload] = []
        self._bytes = 0
        self._due_s = 0.0

    def __len__(self) -> int:
        """How many wait."""
        return len(self._payloads)

    def add(self, payload: Payload) -> None:
        """Adds one, which may make the batch due."""
        if not self._payloads:
            self._due_s = time.monotonic() + self._limits.age_s
        self._payloads.append(payload)
        self._bytes += len(payload.body)

    def wait_s(self, longest_s: float) -> float:
        """Seconds until it is due, at most so many; so many where it is empty."""
        if not self._payloads:
            return longest_s
        return min(max(self._due_s - time.monotonic(), 0.0), longest_s)

    @property
    def is_due(self) -> bool:
        """Whether it is to be sent now."""
        limits = self._limits
        is_full = len(self._payloads) >= limits.size or self._bytes >= limits.size_bytes
        return bool(self._payloads) and (is_full or time.monotonic() >= self._due_s)

    def take(self) -> list[Payload]:
        """All that wait, which wait no longer."""
        payloads, self._payloads, self._bytes = self._payloads, [], 0
        return payloads
