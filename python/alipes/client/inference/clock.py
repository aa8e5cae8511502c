"""How long requests took, by sequence."""

from __future__ import annotations

from collections import defaultdict

__all__ = ["ProfilerClock"]


class ProfilerClock:
    """Latencies of requests.

    Attributes:
        latencies: Sequence, or `None` for requests of none, to the seconds from sending to the answer, in the order of
            the answers; empty for a sequence that has none. Requests that failed are not counted.
    """

    def __init__(self) -> None:
        """Starts empty."""
        self.latencies: defaultdict[int | str | None, list[float]] = defaultdict(list)

    def note(self, sequence_id: int | str | None, latency_s: float) -> None:
        """Notes a request that was answered."""
        self.latencies[sequence_id].append(latency_s)
