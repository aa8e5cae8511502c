"""Metrics of a server's GPUs, collected while a level runs."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from alipes.compat.perf_analyzer.failures import Failed
from alipes.periodic import periodic

__all__ = ["METRICS", "GpuMetrics", "MetricsCollector", "read_metrics"]

METRICS: Final = (
    "nv_gpu_utilization",
    "nv_gpu_power_usage",
    "nv_gpu_memory_used_bytes",
    "nv_gpu_memory_total_bytes",
)
_SAMPLE: Final = re.compile(r'^(\w+)\{[^}]*gpu_uuid="([^"]*)"[^}]*\}\s+([0-9.eE+-]+)\s*$', re.MULTILINE)
_MAX_BYTES: Final = 16 << 20
_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class GpuMetrics:
    """Values by GPU, for each of `METRICS`: means of the first two, the most of the others.

    Attributes:
        values: By metric, then by the GPU's id.
        samples: Looks that they come from.
    """

    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    samples: int = 1

    @classmethod
    def merged(cls, parts: Sequence[GpuMetrics]) -> GpuMetrics:
        """Several looks as one."""
        values: dict[str, dict[str, float]] = {}
        for place, metric in enumerate(METRICS):
            gpus = {gpu for part in parts for gpu in part.values.get(metric, ())}
            for gpu in sorted(gpus):
                seen = [
                    (part.values[metric][gpu], part.samples) for part in parts if gpu in part.values.get(metric, ())
                ]
                is_mean = place < 2  # utilization and power
                mean = sum(value * count for value, count in seen) / sum(count for _, count in seen)
                values.setdefault(metric, {})[gpu] = mean if is_mean else max(value for value, _ in seen)
        return cls(values, sum(part.samples for part in parts))


def read_metrics(text: str) -> GpuMetrics:
    """The GPUs' metrics on a page of Prometheus."""
    values: dict[str, dict[str, float]] = {}
    for metric, gpu, value in _SAMPLE.findall(text):
        if metric in METRICS:
            values.setdefault(metric, {})[gpu] = float(value)
    return GpuMetrics(values)


class MetricsCollector:
    """Looks at the metrics of a server again and again, on a thread of its own. A context manager."""

    def __init__(self, url: str, interval_s: float) -> None:
        """Takes the address, with or without `http://`, and the time between two looks."""
        self._url = url if "://" in url else f"http://{url}"
        self._shown = url
        self._lock = threading.Lock()
        self._seen: list[GpuMetrics] = []
        self._looking = periodic(self._look_again, interval_s, "metrics")

    def __enter__(self) -> MetricsCollector:
        """Begins.

        Raises:
            Failed: If nobody answers there.
        """
        self._seen.append(self._look())
        self._looking.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends."""
        self._looking.__exit__(None, None, None)

    def cut(self) -> GpuMetrics:
        """What was seen since the last cut, the last look of that among it."""
        with self._lock:
            seen, self._seen = self._seen, self._seen[-1:]
        return GpuMetrics.merged(seen)

    def missing(self) -> list[str]:
        """The metrics that the server does not have."""
        with self._lock:
            last = self._seen[-1]
        return [metric for metric in METRICS if metric not in last.values]

    def _look_again(self) -> bool:
        with suppress(Failed):  # a look that failed is missing, no more
            look = self._look()
            with self._lock:
                self._seen.append(look)
        return True

    def _look(self) -> GpuMetrics:
        try:
            with urlopen(self._url, timeout=_TIMEOUT_S) as page:
                return read_metrics(page.read(_MAX_BYTES).decode(errors="replace"))
        except (URLError, OSError, ValueError) as error:
            raise Failed(f"Unable to connect to Metrics endpoint {self._shown}") from error
