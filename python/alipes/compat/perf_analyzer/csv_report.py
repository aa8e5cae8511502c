"""The table of a run."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from alipes.compat.perf_analyzer.level import MeasuredLevel
from alipes.compat.perf_analyzer.metrics import METRICS
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.report import figure, usec
from alipes.compat.perf_analyzer.server_report import each_usec
from alipes.compat.perf_analyzer.server_statistics import Counts
from alipes.compat.perf_analyzer.settings import Settings

__all__ = ["write_csv"]

_PERCENTILES: Final = (50, 90, 95, 99)
_GPU_COLUMNS: Final = ("Avg GPU Utilization", "Avg GPU Power Usage", "Max GPU Memory Usage", "Total GPU Memory")


def write_csv(path: Path, levels: Sequence[MeasuredLevel], settings: Settings, model: Model) -> None:
    """Writes the table, and one more for each model that an ensemble calls.

    Raises:
        OSError: If a file cannot be written.
    """
    rising = sorted(levels, key=lambda level: level.result.client.rate)
    _write(path, [dict(_row(level, settings, model)) for level in rising])
    members = [key for level in rising[:1] if level.result.server is not None for key in level.result.server.composing]
    for name, version in members:
        rows = [dict(_member_row(level, (name, version), settings)) for level in rising]
        _write(path.with_name(f"{name}_v{version}.{path.name}"), rows)


def _write(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def _row(level: MeasuredLevel, settings: Settings, model: Model) -> Iterator[tuple[str, str]]:
    result, percentile, reports = level.result, settings.measuring.percentile, settings.reports
    client = result.client
    yield from _head(level, settings)
    send, wait, receive = usec(client.sending_ms), usec(client.waiting_ms), usec(client.receiving_ms)
    if model.is_decoupled:
        send, wait, receive = 0, usec(client.latencies.mean_ms), 0
        yield "Response Throughput", figure((result.responses or 0) / client.seconds)
    yield "Client Send", str(send)
    counts = Counts() if result.server is None else result.server.own
    yield from _server_columns(counts, wait, model.has_cache)
    yield "Client Recv", str(receive)
    for percent in sorted({*_PERCENTILES, *([] if percentile is None else [percentile])}):
        yield f"p{percent} latency", str(usec(client.latencies.percentile_ms(percent)))
    if not reports.verbose_csv:
        return
    if percentile is None:
        yield "Avg latency", str(usec(client.latencies.mean_ms))
    yield "request/response", str(send + receive)
    yield "response wait", str(wait)
    if result.gpus is not None:
        for metric, column in zip(METRICS, _GPU_COLUMNS, strict=True):
            values = result.gpus.values.get(metric, {})
            yield column, "".join(f"{gpu}:{value:.6g};" for gpu, value in values.items())


def _member_row(level: MeasuredLevel, key: tuple[str, str], settings: Settings) -> Iterator[tuple[str, str]]:
    server = level.result.server
    counts = Counts() if server is None else server.composing.get(key, Counts())
    yield from _head(level, settings)
    yield "Client Send", "0"
    yield from _server_columns(counts, 0, has_cache=False)
    yield "Client Recv", "0"


def _head(level: MeasuredLevel, settings: Settings) -> Iterator[tuple[str, str]]:
    yield "Concurrency" if settings.load.mode == "concurrency" else "Request Rate", figure(level.value)
    yield "Inferences/Second", figure(level.result.client.rate * settings.data.batch)


def _server_columns(counts: Counts, wait: int, has_cache: bool) -> Iterator[tuple[str, str]]:
    """The server's own time, and what is left of the wait for its answer."""
    number = counts.cache_misses if has_cache else counts.successes
    queue = each_usec(counts.queue_ns, counts.successes)
    parts = (counts.compute_input_ns, counts.compute_infer_ns, counts.compute_output_ns)
    compute = [each_usec(part, number) for part in parts]
    cache = each_usec(counts.cache_hit_ns, counts.cache_hits), each_usec(counts.cache_miss_ns, counts.cache_misses)
    all_requests = each_usec(counts.compute_ns + counts.cache_hit_ns + counts.cache_miss_ns, counts.successes)
    yield "Network+Server Send/Recv", str(max(wait - queue - all_requests, 0))
    yield "Server Queue", str(queue)
    for name, value in zip(("Input", "Infer", "Output"), compute, strict=True):
        yield f"Server Compute {name}", str(value)
    if has_cache:
        yield "Server Cache Hit", str(cache[0])
        yield "Server Cache Miss", str(cache[1])
