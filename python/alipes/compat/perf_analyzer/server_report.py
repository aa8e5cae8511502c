"""The server's part of the text of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from alipes.compat.perf_analyzer.metrics import METRICS, GpuMetrics
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.server_statistics import Counts, Snapshot

__all__ = ["each_usec", "gpu_lines", "server_lines"]

_GPU_TITLES: Final = ("Avg GPU Utilization", "Avg GPU Power Usage", "Max GPU Memory Usage", "Total GPU Memory")
_GPU_UNITS: Final = ("%", " watts", " bytes", " bytes")
_MOST_GPUS: Final = 16
"""GPUs that the text lists; the table has all of them."""


def each_usec(total_ns: int, count: int) -> int:
    """Whole microseconds for each."""
    return total_ns // max(count, 1) // 1000


def server_lines(server: Snapshot, model: Model) -> Iterator[str]:
    """What the server counted, of the model and of those that it calls."""
    own = server.own
    if model.is_ensemble:
        yield from _counts(own, "    ", model.has_cache)
        yield f"    Avg request latency: {_ensemble_time(server)}"
    else:
        yield from _model_lines(own, "    ", model.has_cache)
    if server.composing:
        yield ""
        yield "  Composing models: "
    for number, ((name, version), counts) in enumerate(server.composing.items()):
        if number:
            yield ""
        yield f"  {name}, version: {version}"
        yield from _model_lines(counts, "      ", has_cache=counts.cache_hits + counts.cache_misses > 0)


def gpu_lines(gpus: GpuMetrics) -> Iterator[str]:
    """The metrics of its GPUs."""
    for metric, title, unit in zip(METRICS, _GPU_TITLES, _GPU_UNITS, strict=True):
        yield f"    {title}:"
        for gpu, value in list(gpus.values.get(metric, {}).items())[:_MOST_GPUS]:
            yield f"      {gpu} : {value * 100 if unit == '%' else value:.6g}{unit}"


def _counts(counts: Counts, indent: str, has_cache: bool) -> Iterator[str]:
    yield f"{indent}Inference count: {counts.inferences}"
    yield f"{indent}Execution count: {counts.executions}"
    if has_cache:
        yield f"{indent}Cache hit count: {counts.cache_hits}"
        yield f"{indent}Cache miss count: {counts.cache_misses}"
    yield f"{indent}Successful request count: {counts.successes}"


def _model_lines(counts: Counts, indent: str, has_cache: bool) -> Iterator[str]:
    yield from _counts(counts, indent, has_cache)
    number = counts.successes
    total, queue = each_usec(counts.success_ns, number), each_usec(counts.queue_ns, number)
    if has_cache:
        cache = each_usec(counts.cache_hit_ns + counts.cache_miss_ns, number)
        cached = each_usec(counts.cache_hit_ns, counts.cache_hits)
        overhead = max(total - queue - cache - each_usec(counts.compute_ns, number), 0)
        parts = f"overhead {overhead} usec + queue {queue} usec + cache hit/miss {cache} usec"
        yield f"{indent}Avg request latency: {total} usec ({parts})"
        yield f"{indent}  Average Cache Hit Latency: {cached} usec"
        yield f"{indent}  Average Cache Miss Latency: {_miss_time(counts)}"
        return
    compute = [each_usec(part, number) for part in _parts(counts)]
    overhead = max(total - queue - sum(compute), 0)
    parts = f"overhead {overhead} usec + queue {queue} usec + {_named(compute)}"
    yield f"{indent}Avg request latency: {total} usec ({parts})"


def _miss_time(counts: Counts) -> str:
    lookup = each_usec(counts.cache_miss_ns, counts.cache_misses)
    compute = [each_usec(part, counts.cache_misses) for part in _parts(counts)]
    return f"{lookup + sum(compute)} usec (cache lookup/insertion {lookup} usec + {_named(compute)})"


def _ensemble_time(server: Snapshot) -> str:
    number = server.own.successes
    total = each_usec(server.own.success_ns, number)
    queue = each_usec(sum(counts.queue_ns for counts in server.composing.values()), number)
    compute = each_usec(sum(counts.compute_ns for counts in server.composing.values()), number)
    overhead = max(total - queue - compute, 0)
    return f"{total} usec (overhead {overhead} usec + queue {queue} usec + compute {compute} usec)"


def _parts(counts: Counts) -> tuple[int, int, int]:
    return counts.compute_input_ns, counts.compute_infer_ns, counts.compute_output_ns


def _named(compute: list[int]) -> str:
    words = zip(("compute input", "compute infer", "compute output"), compute, strict=True)
    return " + ".join(f"{name} {value} usec" for name, value in words)
