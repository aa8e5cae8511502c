"""The text of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from alipes.compat.perf_analyzer.level import MeasuredLevel
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.server_report import gpu_lines, server_lines
from alipes.compat.perf_analyzer.settings import Load, Settings
from alipes.compat.perf_analyzer.windows import MeasuredWindow
from alipes.loadtest import Histogram

__all__ = ["figure", "level_heading", "level_lines", "pass_line", "settings_lines", "summary_lines", "usec"]

_SERVICES: Final = {
    "triton": "Triton",
    "tfserving": "TensorFlow Serving",
    "torchserve": "TorchServe",
    "kserve_v1": "KServe V1",
    "http": "HTTP",
}
_PERCENTILES: Final = (50, 90, 95, 99)
_LATE_MS: Final = 1.0
"""Lateness from which a request counts as delayed."""
_DELAYED_SHARE: Final = 0.01
"""Share of delayed requests from which it is worth a word."""


def figure(value: float) -> str:
    """A number with six digits, as streams of C++ write it."""
    return f"{value:.6g}"


def usec(milliseconds: float) -> int:
    """Whole microseconds; 0 for no number."""
    return int(milliseconds * 1e3) if milliseconds == milliseconds else 0  # noqa: PLR0124  # NaN differs from itself


def settings_lines(settings: Settings, model: Model) -> Iterator[str]:
    """What is measured, and how."""
    load, measuring = settings.load, settings.measuring
    yield "*** Measurement Settings ***"
    yield f"  Batch size: {settings.data.batch}"
    yield f"  Service Kind: {_SERVICES[settings.target.kind]}"
    if measuring.requests:
        if measuring.warm_up_requests:
            yield f"  Sending {measuring.warm_up_requests} warmup requests"
        yield f"  Sending {measuring.requests} benchmark requests"
    else:
        yield f'  Using "{"count" if measuring.counts else "time"}_windows" mode for stabilization'
        if measuring.counts:
            yield f"  Minimum number of samples in each window: {measuring.window_requests}"
        else:
            yield f"  Measurement window: {measuring.interval_ms} msec"
    yield from _load_lines(load)
    yield f"  Using {'asynchronous' if is_async(settings, model) else 'synchronous'} calls for inference"
    if model.is_decoupled:
        yield "  Detected decoupled model, using the first response for measuring latency"
    stable = "average" if measuring.percentile is None else f"p{measuring.percentile}"
    yield f"  Stabilizing using {stable} latency"
    yield ""


def is_async(settings: Settings, model: Model) -> bool:
    """What is said of calls: sequences and streams are asynchronous unless an option says otherwise."""
    if settings.load.is_async is not None:
        return settings.load.is_async
    return model.is_sequence or settings.load.streaming


def _load_lines(load: Load) -> Iterator[str]:
    if load.mode in ("concurrency", "request_rate") and load.end != 1:
        yield f"  Latency limit: {load.latency_limit_ms} msec"
        if load.end and load.mode == "concurrency":
            yield f"  Concurrency limit: {int(max(load.start, load.end))} concurrent requests"
        elif load.end:
            yield f"  Request Rate limit: {figure(max(load.start, load.end))} requests per seconds"
    if load.mode == "request_rate":
        yield f"  Using {'poisson' if load.poisson else 'uniform'} distribution on request generation"
    if load.binary_search:
        yield "  Using Binary Search algorithm"


def level_heading(load: Load, value: float) -> str:
    """The line in front of a level; empty for intervals and periodic runs."""
    if load.mode == "concurrency":
        return f"Request concurrency: {int(value)}"
    return f"Request Rate: {figure(value)} inference requests per seconds" if load.mode == "request_rate" else ""


def pass_line(number: int, window: MeasuredWindow, settings: Settings) -> str:
    """A window, while its level is measured."""
    client, percentile = window.client, settings.measuring.percentile
    text = f"  Pass [{number}] throughput: {figure(client.rate * settings.data.batch)} infer/sec. "
    if percentile is not None:
        return f"{text}p{percentile} latency: {usec(window.latency_ms(percentile))} usec"
    return f"{text}Avg latency: {usec(client.latencies.mean_ms)} usec (std {usec(client.latencies.std_ms)} usec). "


def level_lines(level: MeasuredLevel, settings: Settings, model: Model) -> Iterator[str]:
    """A level that was measured."""
    result = level.result
    yield "  Client: "
    yield from _client_lines(result, settings, model.is_decoupled)
    if result.server is not None:
        yield "  Server: "
        yield from server_lines(result.server, model)
    if result.gpus is None:
        yield ""
        return
    yield ""
    yield "  Server Prometheus Metrics: "
    yield from gpu_lines(result.gpus)


def _client_lines(result: MeasuredWindow, settings: Settings, is_decoupled: bool) -> Iterator[str]:
    client, verbose = result.client, settings.reports.verbosity > 0
    yield f"    Request count: {client.answers}"
    delayed = delayed_share(result) if settings.load.mode != "concurrency" else 0.0
    if settings.load.mode != "concurrency" and (verbose or delayed > _DELAYED_SHARE):
        # Over a window, as many are sent as are over, but for those that are under way at its ends.
        yield f"    Avg send request rate: {figure((client.answers + client.failed) / client.seconds)} infer/sec"
    if delayed > _DELAYED_SHARE:
        yield (
            "    [WARNING] Perf Analyzer was not able to keep up with the desired request rate. "
            f"{delayed * 100:.2f}% of the requests were delayed. "
        )
    if result.sequences is not None:
        rate = figure(result.sequences / client.seconds)
        yield f"    Sequence count: {result.sequences} ({rate} seq/sec)"
    yield f"    Throughput: {figure(client.rate * settings.data.batch)} infer/sec"
    if is_decoupled and result.responses is not None:
        yield f"    Response Throughput: {figure(result.responses / client.seconds)} infer/sec"
    if verbose:
        yield f"    Avg client overhead: {min(client.tester_cores, 1.0) * 100:.2f}%"
    percentile = settings.measuring.percentile
    if percentile is None:
        latencies = client.latencies
        deviation = usec(latencies.std_ms)
        yield f"    Avg latency: {usec(latencies.mean_ms)} usec (standard deviation {deviation} usec)"
    for percent in sorted({*_PERCENTILES, *([] if percentile is None else [percentile])}):
        yield f"    p{percent} latency: {usec(client.latencies.percentile_ms(percent))} usec"
    yield "    " if is_decoupled else _time_line(result, settings.target.protocol, verbose)


def _time_line(result: MeasuredWindow, protocol: str, verbose: bool) -> str:
    client = result.client
    send, wait, receive = usec(client.sending_ms), usec(client.waiting_ms), usec(client.receiving_ms)
    over_grpc = protocol == "grpc"
    if verbose:
        first, last = ("marshal", "unmarshal") if over_grpc else ("send", "receive")
        parts = f"{first} {send} usec + response wait {wait} usec + {last} {receive} usec"
    else:
        both = "(un)marshal request/response" if over_grpc else "send/recv"
        parts = f"{both} {send + receive} usec + response wait {wait} usec"
    return f"    Avg {'gRPC' if over_grpc else 'HTTP'} time: {send + wait + receive} usec ({parts})"


def delayed_share(result: MeasuredWindow) -> float:
    """Share of the requests that the tester, or a free connection, was late for."""
    return max(_above(result.client.lateness), _above(result.client.queueing))


def _above(times: Histogram) -> float:
    if not times.count:
        return 0.0
    return float(times.counts[times.times_ns > _LATE_MS * 1e6].sum()) / times.count


def summary_lines(levels: Sequence[MeasuredLevel], settings: Settings) -> Iterator[str]:
    """One line for each level."""
    percentile = settings.measuring.percentile
    stable = "Average" if percentile is None else f"p{percentile}"
    yield f"Inferences/Second vs. Client {stable} Batch Latency"
    name = "Concurrency" if settings.load.mode == "concurrency" else "Request Rate"
    for level in levels:
        result = level.result
        rate = figure(result.client.rate * settings.data.batch)
        latency = usec(result.latency_ms(percentile))
        note = "" if level.is_settled else " (not stable)"
        yield f"{name}: {figure(level.value)}, throughput: {rate} infer/sec, latency {latency} usec{note}"
