"""Measures a server that runs already: every model that gets requests, at the same time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from alipes.client import Client
from alipes.client.model_counts import STAGES, ModelCounts
from alipes.loadtest import Closed, Level, Measuring, ModelRequests, Open, Window
from alipes.loadtest import run as load
from alipes.loadtest.pace import Pace
from alipes.tune.knobs import CALLERS, RATE, ROWS
from alipes.tune.outcome import Outcome
from alipes.tune.point import Point

__all__ = ["measure"]

_PERCENTILES: Final = {"p50_ms": 50, "p90_ms": 90, "p95_ms": 95, "p99_ms": 99}


class _Interrupted(Exception):
    """Ends a load test in another thread."""


@dataclass(frozen=True)
class _Seen:
    requests: ModelRequests
    level: Level
    stages_ms: Mapping[str, float]


def measure(point: Point, address: str, requests: Sequence[ModelRequests], measuring: Measuring) -> Outcome:
    """Loads a server as a point says.

    Args:
        point: Its callers are the load; one where it names none.
        address: The server.
        requests: For each model that gets requests.
        measuring: How.

    Returns:
        The figures, without those of the server's process.

    Raises:
        AlipesError: If the server is not there, or does not know a model.
    """
    ended = threading.Event()

    def go_on(pace: Pace, windows: Sequence[Window]) -> None:
        if ended.is_set():
            raise _Interrupted

    def one(source: ModelRequests) -> _Seen:
        source = replace(source, batch=point.number(source.model, ROWS) or source.batch)
        rate = point.number(source.model, RATE)
        pace = Open.at(rate, seed=0) if rate is not None else Closed(point.number(source.model, CALLERS) or 1)
        with Client(address) as client:
            before = _stages_ns(client, source.model)
            report = load(source, pace, address=address, measuring=measuring, each_window=go_on)
            after = _stages_ns(client, source.model)
        return _Seen(source, report.levels[0], _means_ms(before, after))

    begun = time.perf_counter()
    with ThreadPoolExecutor(len(requests)) as pool:
        try:
            seen = list(pool.map(one, requests))
        except BaseException:  # an interrupt too: the windows that run are the last ones
            ended.set()
            raise
    return _outcome(point, seen, time.perf_counter() - begun)


def _outcome(point: Point, seen: Sequence[_Seen], seconds: float) -> Outcome:
    rows = {one.requests.model: _figures(one) for one in seen}
    figures: dict[str, float] = {
        name: sum(row[name] for row in rows.values()) for name in ("rate", "rate_low", "rate_high")
    }
    figures |= {name: max(row[name] for row in rows.values()) for name in ("mean_ms", *_PERCENTILES)}
    if len(rows) > 1:
        figures |= {f"{model}.{name}": value for model, row in rows.items() for name, value in row.items()}
    details = {"seconds": seconds}
    for one in seen:
        front = f"{one.requests.model}." if len(rows) > 1 else ""
        details |= {f"{front}{name}_ms": value for name, value in one.stages_ms.items()}
        result = one.level.result
        details |= {
            f"{front}send_ms": result.sending_ms,
            f"{front}wait_ms": result.waiting_ms,
            f"{front}receive_ms": result.receiving_ms,
            f"{front}failed": float(result.failed),
        }
    notes = [f"{one.requests.model}: {note}" if len(rows) > 1 else note for one in seen for note in one.level.notes()]
    settled = all(one.level.is_settled or len(one.level.windows) == 1 for one in seen)
    return Outcome(point, figures, _failure(seen), tuple(notes), details, settled)


def _figures(seen: _Seen) -> dict[str, float]:
    rate, result, batch = seen.level.rate, seen.level.result, seen.requests.batch
    figures = {"rate": rate.mean * batch}
    figures["rate_low"], figures["rate_high"] = (
        (rate.mean * batch, rate.mean * batch) if math.isnan(rate.low) else (rate.low * batch, rate.high * batch)
    )
    figures["mean_ms"] = result.latencies.mean_ms
    return figures | {name: result.latencies.percentile_ms(percent) for name, percent in _PERCENTILES.items()}


def _failure(seen: Sequence[_Seen]) -> str:
    """A level without answers, or with more failures than answers, says nothing of the configuration's speed."""
    for one in seen:
        result = one.level.result
        if result.failed > result.answers or not result.answers:
            text = max(result.failures, key=lambda text: result.failures[text], default="nothing was answered")
            return f"{result.failed:,} of {result.failed + result.answers:,} requests failed: {text}"
    return ""


def _stages_ns(client: Client, model: str) -> dict[str, tuple[int, int]]:
    """Count and nanoseconds of each stage, over all versions."""
    counts = ModelCounts.of_all(client.statistics(model))
    return {stage: (counts.part(stage).count, counts.part(stage).ns) for stage in STAGES}


def _means_ms(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> dict[str, float]:
    means = {}
    for stage, (count, time_ns) in after.items():
        old_count, old_ns = before.get(stage, (0, 0))
        if count > old_count:
            means[stage] = (time_ns - old_ns) / (count - old_count) / 1e6
    return means
