"""Whether a model of a script takes several requests as one: only where its class, or the object, says so.

The SDK has no such option; its agent joins requests of every model behind it. These are attributes of ours, which the
SDK does not look at, so that a script with them runs under both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

__all__ = ["MAX_BATCH_SIZE", "MAX_LATENCY_MS", "Batching"]

MAX_BATCH_SIZE: Final = "alipes_max_batch_size"
"""Attribute of a model: most requests that are one for it."""

MAX_LATENCY_MS: Final = "alipes_max_latency_ms"
"""Attribute of a model: milliseconds that a request may wait for others; 0 by default."""

_MOST_LATENCY_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Batching:
    """What a model says of it.

    Attributes:
        max_batch_size: Most requests that are one; 0 where each is by itself.
        max_latency_ms: Milliseconds that a request may wait for others.
    """

    max_batch_size: int = 0
    max_latency_ms: float = 0.0

    @classmethod
    def of(cls, model: object) -> Self:
        """Reads the attributes of a model.

        Raises:
            ValueError: If they are no such numbers.
        """
        size, latency = getattr(model, MAX_BATCH_SIZE, 0), getattr(model, MAX_LATENCY_MS, 0)
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ValueError(f"{MAX_BATCH_SIZE} is a number of requests, got {size!r}")
        if isinstance(latency, bool) or not isinstance(latency, (int, float)) or not 0 <= latency <= _MOST_LATENCY_MS:
            raise ValueError(f"{MAX_LATENCY_MS} is 0 to {_MOST_LATENCY_MS} milliseconds, got {latency!r}")
        return cls(size, latency) if size > 1 else cls()

    def __bool__(self) -> bool:
        """Whether several requests are one."""
        return self.max_batch_size > 1

    @property
    def config(self) -> dict[str, Any]:
        """The fields of the model's configuration."""
        if not self:
            return {}
        delay = round(self.max_latency_ms * 1000)
        return {
            "max_batch_size": self.max_batch_size,
            "dynamic_batching": {"max_queue_delay_microseconds": delay},
        }
