"""What a closed loop leaves out while it waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from alipes.loadtest.histogram import Histogram

__all__ = ["Omission", "omission"]

_LONG: Final = 10.0
"""How many times the median a latency is before its caller has left out requests."""
_MIN_SHARE: Final = 0.01
"""Share of all requests from which what is missing changes the 99th percentile."""
_STEPS: Final = 1000
"""Most points by which the latencies that one answer hides are drawn."""


@dataclass(frozen=True, slots=True)
class Omission:
    """What a closed loop has left out.

    Attributes:
        times: How many times the median the longest latency is.
        share: Of all requests that would have been sent, those that were not.
        p99_ms: The 99th percentile with them.
    """

    times: float
    share: float
    p99_ms: float


def omission(latencies: Histogram) -> Omission | None:
    """What is missing, if it changes the 99th percentile.

    A caller sends about once in a median latency. One that waits `n` times as long leaves out `n - 1` requests, which
    would have waited a median less each. Source: Gil Tene's correction for coordinated omission.
    """
    if not latencies.count:
        return None
    median = latencies.percentile_ms(50) * 1e6
    long = latencies.times_ns > _LONG * median
    times, counts = latencies.times_ns[long].astype(float), latencies.counts[long].astype(float)
    left_out = times / median - 1
    missing = float((left_out * counts).sum())
    share = missing / (missing + latencies.count)
    if share < _MIN_SHARE:
        return None
    # Those that one answer hides are spread evenly between a median and its own time.
    places = (np.arange(_STEPS) + 0.5) / _STEPS
    hidden = median + np.outer(times - median, places)
    weights = np.repeat(left_out * counts / _STEPS, _STEPS)
    values = np.concatenate([latencies.times_ns.astype(float), hidden.ravel()])
    weight = np.concatenate([latencies.counts.astype(float), weights])
    order = np.argsort(values)
    reached = np.cumsum(weight[order])
    p99 = values[order][np.searchsorted(reached, 0.99 * reached[-1])]
    return Omission(float(times[-1]) / median, share, float(p99) / 1e6)
