"""Windows of load tests, as if they had been measured."""

from __future__ import annotations

import numpy as np
from alipes.loadtest import Closed, Histogram, Level, Report, Window


def histogram(*times_ms: float) -> Histogram:
    """These times."""
    times, counts = np.unique(np.array(times_ms) * 1e6, return_counts=True)
    return Histogram(times.astype(np.uint64), counts.astype(np.uint64))


def window(answers: int = 100, latency_ms: float = 10.0, **other: object) -> Window:
    """A window of a second, all of whose answers took equally long."""
    nothing = histogram(*[0.0] * answers)
    parts = {"latencies": histogram(*[latency_ms] * answers), "lateness": nothing, "queueing": nothing}
    figures = {"sending_ms": 1.0, "waiting_ms": 2.0, "receiving_ms": 3.0}
    return Window(1.0, **{**parts, **figures, **other})  # type: ignore[arg-type]


def report() -> Report:
    """Two levels: one that settled in its last three windows, and one with a single window and failures."""
    settled = [window(50), *(window(100 + number, 10.0 + number) for number in range(3))]
    single = window(200, 20.0, failures={"</script> refused": 3})
    return Report(
        "http://localhost:8000",
        [Level(Closed(1), settled, 3, True, 1), Level(Closed(8), [single], 1, False, 1)],
    )
