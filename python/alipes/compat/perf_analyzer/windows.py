"""What a window of a level showed, of the client and of the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alipes.compat.perf_analyzer.logged import LoggedRequests
from alipes.compat.perf_analyzer.metrics import GpuMetrics
from alipes.compat.perf_analyzer.server_statistics import Snapshot
from alipes.loadtest import Window

__all__ = ["MeasuredWindow", "total"]


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """A window of a level, or several as one.

    Attributes:
        client: What the tester saw.
        server: What the server counted meanwhile; none where it has no statistics.
        gpus: Its metrics meanwhile; none where they were not collected.
        responses: Responses on streams; none where there are no streams.
        sequences: Sequences that ended; none where there are no sequences.
        requests: Each request, where they are logged.
        begun_ns: When it began, in nanoseconds since 1970.
    """

    client: Window
    server: Snapshot | None = None
    gpus: GpuMetrics | None = None
    responses: int | None = None
    sequences: int | None = None
    requests: Sequence[LoggedRequests] = ()
    begun_ns: int = 0

    @classmethod
    def merged(cls, windows: Sequence[MeasuredWindow]) -> MeasuredWindow:
        """Several as one."""
        servers = [window.server for window in windows]
        whole: Snapshot | None = Snapshot()
        for server in servers:
            whole = None if whole is None or server is None else whole + server
        gpus = [window.gpus for window in windows if window.gpus is not None]
        return cls(
            Window.merged(window.client for window in windows),
            whole,
            GpuMetrics.merged(gpus) if gpus else None,
            total([window.responses for window in windows]),
            total([window.sequences for window in windows]),
        )

    def latency_ms(self, percentile: int | None) -> float:
        """The latency that has to settle: a percentile, or the mean."""
        latencies = self.client.latencies
        return latencies.mean_ms if percentile is None else latencies.percentile_ms(percentile)


def total(numbers: Sequence[int | None]) -> int | None:
    """The sum of what is known; none where nothing is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
