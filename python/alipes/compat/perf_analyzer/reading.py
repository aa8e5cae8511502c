"""Options become settings; what cannot go together is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from alipes.compat.perf_analyzer.data_options import read_data, read_sequences
from alipes.compat.perf_analyzer.failures import Exit, Failed, OptionFailed
from alipes.compat.perf_analyzer.load_options import read_load
from alipes.compat.perf_analyzer.parser import Argument
from alipes.compat.perf_analyzer.settings import Measuring, Reports, Settings
from alipes.compat.perf_analyzer.target_options import read_target
from alipes.compat.perf_analyzer.trace_settings import read_trace
from alipes.compat.perf_analyzer.values import (
    choice,
)
from alipes.compat.perf_analyzer.words import Words

__all__ = ["read_settings"]


def read_settings(arguments: Sequence[Argument]) -> Settings:
    """The settings of a command line.

    Raises:
        OptionFailed: If a value cannot be read, or options do not go together.
        Failed: If an option is not served here.
    """
    words = Words(arguments)
    for argument in arguments:
        if not argument.option.is_served:
            raise Failed(f"Error: {argument.written} is not served: {argument.option.about}", Exit.OPTION)
    settings = Settings(
        read_target(words),
        read_load(words),
        _measuring(words),
        read_data(words),
        read_sequences(words),
        _reports(words),
        read_trace(words),
    )
    _check(settings)
    return settings


def _measuring(words: Words) -> Measuring:
    plain = Measuring()
    percentile = words.read("percentile", _percentile, None)
    mode = words.read(
        "measurement-mode",
        lambda argument: choice(
            argument,
            ("time_windows", "count_windows"),
            "The available options are 'time_windows' or 'count_windows'.",
        ),
        "time_windows",
    )
    return Measuring(
        words.whole("measurement-interval", plain.interval_ms, 1, "--measurement-interval (-p)", "> 0 msec."),
        mode == "count_windows",
        words.whole("measurement-request-count", plain.window_requests, 1),
        words.whole("request-count", plain.requests, 0, wanted="> 0."),
        words.whole("warmup-request-count", plain.warm_up_requests, 0),
        words.real("stability-percentage", plain.stability_percent, "--stability-percentage (-s)"),
        words.whole("max-trials", plain.most_windows, 1, "--max-trials (-r)"),
        percentile,
    )


def _percentile(argument: Argument) -> int | None:
    try:
        value = int(argument.value)
    except ValueError:
        value = 0
    if value != -1 and not 0 < value < 100:  # percent
        raise OptionFailed("Failed to parse --percentile. The value must be -1 for not reporting or in range (0, 100).")
    return None if value == -1 else value


def _reports(words: Words) -> Reports:
    plain = Reports()
    collects = words.has("collect-metrics")
    for name in ("metrics-url", "metrics-interval"):
        if words.has(name) and not collects:
            words.whole("metrics-interval", 1, 1, wanted="> 0 msecs.")
            raise OptionFailed(f"Must specify --collect-metrics when using the --{name} option.")
    profile = words.last("profile-export-file")
    if profile is not None and Path(profile.value).exists():
        raise OptionFailed("Failed to parse --profile-export-file. Path must not already exist.")
    return Reports(
        Path(words.text("csv")) if words.has("csv") else None,
        words.has("verbose-csv"),
        None if profile is None else Path(profile.value),
        (words.text("metrics-url") or "localhost:8002/metrics") if collects else None,
        words.whole("metrics-interval", plain.metrics_interval_ms, 1, wanted="> 0 msecs."),
        len(words.all("verbose")),
    )


def _check(settings: Settings) -> None:
    """What does not go together."""
    over_grpc = settings.target.protocol == "grpc"
    if settings.load.streaming and not over_grpc:
        raise OptionFailed("Streaming is only allowed with gRPC protocol.")
    if settings.target.compression and not over_grpc:
        raise OptionFailed("Using compression algorithm is only allowed with gRPC protocol.")
    if settings.trace and settings.target.kind != "triton":
        raise OptionFailed("Trace settings are only supported with Triton client backend.")
    if settings.data.parameters and not over_grpc and settings.target.kind != "triton":
        raise OptionFailed("The --request-parameter option is currently only supported by gRPC protocol.")
    if settings.reports.metrics_url is not None and settings.target.kind != "triton":
        raise OptionFailed("Server-side metric collection is only supported with Triton client backend.")
    _check_counts(settings)
    _check_service(settings)


def _check_counts(settings: Settings) -> None:
    load, measuring = settings.load, settings.measuring
    several = load.is_range and load.end != load.start
    values = "concurrency" if load.mode == "concurrency" else "request rate"
    for name, count in (("warmup-request-count", measuring.warm_up_requests), ("request-count", measuring.requests)):
        if count and several:
            raise OptionFailed(f"--{name} not supported with multiple {values} values in one run")
    if measuring.requests and load.mode != "intervals" and measuring.requests < load.start:
        raise OptionFailed(f"--request-count can not be less than {values}")


def _check_service(settings: Settings) -> None:
    target = settings.target
    if target.kind in ("torchserve", "http") and isinstance(settings.data.source, str):
        raise OptionFailed(f"--input-data should be provided with a json file with input data for {target.kind}.")
    if target.kind in ("torchserve", "kserve_v1", "http") and target.protocol != "http":
        raise OptionFailed(f"--service-kind {target.kind} is asked over HTTP: leave out -i grpc.")
    if target.kind == "tfserving":
        _check_tfserving(settings)
    if target.kind == "http" and not target.endpoint:
        raise OptionFailed('Must supply --endpoint for the service kind http. For example, "predict".')


def _check_tfserving(settings: Settings) -> None:
    """What the original refuses of TensorFlow Serving."""
    if settings.target.protocol != "grpc":
        raise OptionFailed("perf_analyzer supports only grpc protocol for TensorFlow Serving.")
    if settings.load.streaming:
        raise OptionFailed("perf_analyzer does not support streaming for TensorFlow Serving.")
    if settings.load.is_async:
        raise OptionFailed("perf_analyzer does not support async API for TensorFlow Serving.")
    if settings.data.shared_memory != "none":
        raise OptionFailed("--shared-memory is not supported for TensorFlow Serving.")
    if settings.data.parameters:
        raise OptionFailed("--request-parameter is not supported for TensorFlow Serving.")
