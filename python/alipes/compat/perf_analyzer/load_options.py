"""The options that say which levels of load are measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from alipes.compat.perf_analyzer.failures import OptionFailed
from alipes.compat.perf_analyzer.parser import Argument
from alipes.compat.perf_analyzer.settings import Load
from alipes.compat.perf_analyzer.values import choice, existing_file, integer, span
from alipes.compat.perf_analyzer.words import Words

__all__ = ["read_load"]

_MODES: Final = ("concurrency-range", "periodic-concurrency-range", "request-rate-range", "request-intervals")
_ONE_MODE: Final = (
    "Cannot specify more then one inference load mode. Please choose only one of the following modes: "
    "--concurrency-range, --periodic-concurrency-range, --request-rate-range, or --request-intervals."
)
_OLDER: Final = ("threads", "most-concurrency", "dynamic-concurrency")
_MOST_WAVES: Final = 10_000
"""Requests of a periodic run."""
_MOST_INTERVALS: Final = 10_000_000
"""Lines of a file of intervals."""


def read_load(words: Words) -> Load:
    """The levels.

    Raises:
        OptionFailed: If a value cannot be read, or options do not go together.
    """
    used = [name for name in _MODES if words.has(name)]
    if len(used) > 1:
        raise OptionFailed(_ONE_MODE)
    if used and any(words.has(name) for name in _OLDER):
        refused = "deprecated" if used == ["concurrency-range"] else "concurrency"
        raise OptionFailed(f"Cannot use {refused} options with --{used[0]}.")
    load = replace(
        _levels(words),
        poisson=words.read("request-distribution", _distribution, "constant") == "poisson",
        binary_search=words.has("binary-search"),
        latency_limit_ms=words.whole("latency-threshold", 0, 0, "--latency-threshold (-l)", ">= 0 msecs."),
        most_threads=words.whole("max-threads", 16, 1),
        is_async=_calls(words),
        streaming=words.has("streaming"),
        period=words.whole("request-period", 10, 1, wanted="> 0"),
    )
    _check(load)
    if load.mode == "periodic":
        _check_periodic(load, words)
    return load


def _levels(words: Words) -> Load:
    if (argument := words.last("request-rate-range")) is not None:
        values = span(argument)
        if values[0] <= 0:
            raise OptionFailed("Failed to parse --request-rate-range. The start of the search range must be > 0.")
        return _range("request_rate", values)
    if (argument := words.last("request-intervals")) is not None:
        spans = _intervals(argument)
        rate = len(spans) / sum(spans)
        rate = int(rate) or rate  # as the original shows it
        return Load("intervals", rate, rate, intervals_s=spans)
    if (argument := words.last("periodic-concurrency-range")) is not None:
        return _periodic(argument)
    if (argument := words.last("concurrency-range")) is not None:
        values = span(argument)
        if any(value != int(value) for value in values):
            raise OptionFailed(f"Failed to parse --concurrency-range. Invalid value provided: {argument.value}")
        return _range("concurrency", values)
    start = words.read("threads", integer, 1)
    if words.has("dynamic-concurrency"):
        return _range("concurrency", [start, words.read("most-concurrency", integer, 0)])
    return _range("concurrency", [start])


def _range(mode: str, values: list[float]) -> Load:
    start, end, step = (*values, *(1.0, 1.0, 1.0)[len(values) :])
    return Load("concurrency" if mode == "concurrency" else "request_rate", start, end, step, len(values) > 1)


def _periodic(argument: Argument) -> Load:
    """Requests of the first wave, of all waves together, and of each further one."""
    failed = f"Failed to parse {argument.written}. "
    values = span(argument)
    if any(value != int(value) for value in values):
        raise OptionFailed(f"{failed}Invalid value provided: {argument.value}")
    if len(values) == 1:
        raise OptionFailed(f"{failed}Both <start> and <end> values must be provided.")
    start, end, step = (*values, 1.0)[:3]
    if step <= 0:
        raise OptionFailed(f"{failed}The <step> value must be > 0.")
    if start > end:
        raise OptionFailed(f"{failed}The <start> must be <= <end>.")
    if (end - start) % step:
        raise OptionFailed(f"{failed}The <step> value must be a factor of the range size (<end> - <start>).")
    if end > _MOST_WAVES:
        raise OptionFailed(f"{failed}The <end> must be <= {_MOST_WAVES}: each request has a stream of its own.")
    return Load("periodic", start, end, step, is_range=True)


def _check_periodic(load: Load, words: Words) -> None:
    if not load.streaming:
        raise OptionFailed("The --periodic-concurrency-range option requires bi-directional gRPC streaming.")
    if not words.has("profile-export-file"):
        raise OptionFailed("Must provide --profile-export-file when using the --periodic-concurrency-range option.")


def _distribution(argument: Argument) -> str:
    return choice(argument, ("poisson", "constant"), "Choices are 'posson' or 'constant'.")


def _calls(words: Words) -> bool | None:
    if words.has("async") and words.has("sync"):
        raise OptionFailed("Cannot specify --async and --sync simultaneously.")
    return True if words.has("async") else False if words.has("sync") else None


def _intervals(argument: Argument) -> tuple[float, ...]:
    path: Path = existing_file(argument, "")
    try:
        lines = path.read_text(encoding="utf-8").split()
        spans = tuple(float(line) / 1e6 for line in lines[:_MOST_INTERVALS])
    except (OSError, ValueError) as error:
        raise OptionFailed(f"Failed to parse {argument.written}. '{path}' holds no microseconds: {error}") from error
    if not spans or min(spans) < 0 or not any(spans) or len(lines) > _MOST_INTERVALS:
        raise OptionFailed(
            f"Failed to parse {argument.written}. '{path}' must hold microseconds of 0 or more, one in each of at "
            f"most {_MOST_INTERVALS} lines, and not all 0."
        )
    return spans


def _check(load: Load) -> None:
    if load.start <= 0:
        raise OptionFailed("The start of the search range must be > 0")
    if not load.end and not load.latency_limit_ms:
        raise OptionFailed(
            "The end of the search range and the latency limit can not be both 0 (or 0.0) simultaneously"
        )
    if load.step <= 0 or load.end < 0:
        raise OptionFailed("The step of the search range must be > 0, and its end >= 0")
    if not load.binary_search:
        return
    if not load.end:
        raise OptionFailed("The end of the range can not be 0 (or 0.0) for binary search mode.")
    if not load.latency_limit_ms:
        raise OptionFailed("The --latency-threshold cannot be 0 for binary search mode.")
    if load.is_range and load.end < load.start:
        raise OptionFailed("The end of the range can not be less than start of the range for binary search mode.")
