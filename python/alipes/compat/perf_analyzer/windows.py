"""What a window of a level showed, of the client and of the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alipes.compat.perf_analyzer.metrics import GpuMetrics
from alipes.compat.perf_analyzer.server_statistics import Snapshot
from alipes.loadtest import Window

__all__ = ["MeasuredWindow"]


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """A window of a level, or several as one.

    Attributes:
        client: What the tester saw.
        server: What the server counted meanwhile; none where it has no statistics.
        gpus: Its metrics meanwhile; none where they were not collected.
    """

    client: Window
    server: Snapshot | None = None
    gpus: GpuMetrics | None = None

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
        )

    def latency_ms(self, percentile: int | None) -> float:
        """The latency that has to settle: a percentile, or the mean."""
        latencies = self.client.latencies
        return latencies.mean_ms if percentile is None else latencies.percentile_ms(percentile)
