"""Requests that were recorded, as their number in each second: from times and counts, or from single requests."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from alipes.errors import ConfigError

__all__ = ["read_demand"]

_MAX_LINES: Final = 20_000_000
_MAX_SECONDS: Final = 8 * 24 * 3600
"""A week and a day."""
_TIMES: Final = ("time", "timestamp", "occurrenceTime")
_COUNTS: Final = ("count", "requests")
_REQUEST: Final = "org.kubeflow.serving.inference.request"
"""The type of a request in a payload log, which records responses too."""
_WANTED: Final = (
    "expected a first line that names the columns time,count or time,rate or time, or lines of JSON with these names; "
    "a time is a number of seconds, or such as 2026-01-31T08:00:00"
)
_LINES: Final = {".jsonl", ".ndjson"}


def read_demand(path: Path) -> np.ndarray[Any, Any]:
    """Requests in each second from the first that was recorded to the last.

    With counts, the requests of a time come evenly until the next one. With rates, requests per second go in a straight
    line from one time to the next, as `Open.recorded` reads them. With times alone, each is a request; so are the
    requests in a payload log of JSON lines.

    Args:
        path: A file of comma-separated values, or of JSON lines (`.jsonl`).

    Raises:
        ConfigError: If the file cannot be read, its times do not ascend where they have to, or it spans more than a
            week and a day.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = _json_rows(file, path) if path.suffix in _LINES else _table_rows(file, path)
            return _seconds(path, *_columns(rows, path))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"'{path}' cannot be read: {error}; {_WANTED}", path=path) from error


def _table_rows(file: Iterable[str], path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.DictReader(file)
    if not {*_TIMES}.intersection(reader.fieldnames or ()):
        raise ConfigError(f"'{path}' has no column of times: {_WANTED}", path=path, line=1)
    yield from enumerate(reader, start=2)


def _json_rows(file: Iterable[str], path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _wrong(path, number, f"no JSON: {error}") from error
        if not isinstance(row, dict):
            raise _wrong(path, number, "no JSON object")
        if row.get("reqType", _REQUEST) == _REQUEST:
            yield number, row


def _columns(
    rows: Iterable[tuple[int, Mapping[str, Any]]], path: Path
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None, bool]:
    """Times, numbers where there are some, and whether these are rates."""
    times: list[float] = []
    numbers: list[float] = []
    kinds: set[str | None] = set()
    for line, row in rows:
        if len(times) >= _MAX_LINES:
            raise ConfigError(f"'{path}' has more than {_MAX_LINES:,} lines: count the requests of each second")
        kind = next((name for name in (*_COUNTS, "rate") if row.get(name) not in {None, ""}), None)
        kinds.add(kind)
        try:
            times.append(_moment(next(row[name] for name in _TIMES if row.get(name) is not None)))
            numbers.append(1.0 if kind is None else float(row[kind]))
        except (ValueError, TypeError, OverflowError, StopIteration) as error:
            raise _wrong(path, line, "no time, or no number") from error
        if not (0 <= numbers[-1] < math.inf and math.isfinite(times[-1])):
            raise _wrong(path, line, f"the number {numbers[-1]:g}, where one of 0 or more belongs")
    if len(kinds) != 1:
        reason = "some lines have a number and others have none" if kinds else "it has no request"
        raise ConfigError(f"'{path}' is no record of requests: {reason}; {_WANTED}", path=path)
    kind = kinds.pop()
    return np.array(times), None if kind is None else np.array(numbers), kind == "rate"


def _moment(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _seconds(
    path: Path, times: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any] | None, are_rates: bool
) -> np.ndarray[Any, Any]:
    span_s = float(times.max() - times.min())
    if span_s > _MAX_SECONDS:
        days = _MAX_SECONDS // 86_400
        raise ConfigError(f"'{path}' spans {span_s / 86_400:.1f} days, more than {days}: name a part of it", path=path)
    if numbers is None:
        first = math.floor(times.min())
        return np.bincount((np.floor(times) - first).astype(int)).astype(float)
    if len(times) < 2 or np.any(np.diff(times) <= 0):
        raise ConfigError(f"'{path}' takes two times at least, which ascend", path=path)
    return _rates(times, numbers) if are_rates else _counts(times, numbers)


def _counts(times: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Requests of each second, where those of a time come evenly until the next; the last span is as the one before."""
    ends = np.append(times, times[-1] + (times[-1] - times[-2])) - times[0]
    so_far = np.concatenate([[0.0], np.cumsum(counts)])
    reached: np.ndarray[Any, Any] = np.interp(np.arange(max(1, math.ceil(ends[-1])) + 1), ends, so_far)
    return np.diff(reached)


def _rates(times: np.ndarray[Any, Any], rates: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Requests of each second, where rates go in straight lines."""
    middles = np.arange(max(1, math.ceil(times[-1] - times[0]))) + 0.5
    found: np.ndarray[Any, Any] = np.interp(middles, times - times[0], rates)
    return found


def _wrong(path: Path, line: int, what: str) -> ConfigError:
    return ConfigError(f"line {line} of '{path}' has {what}: {_WANTED}", path=path, line=line)
