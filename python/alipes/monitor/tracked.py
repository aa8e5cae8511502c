"""Lines of a record whose counters the caller keeps, for scripts that look at servers themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Final

from alipes.errors import MonitorError
from alipes.monitor.columns import COUNT, DURATIONS
from alipes.monitor.ledger import Key
from alipes.monitor.prometheus import Sample

__all__ = ["tracked_lines"]

_COUNT: Final = "count"


def tracked_lines(
    ip: str, keys: Sequence[Key], page: Iterable[Sample], tracker: dict[str, dict[str, int]], timestamp: float
) -> list[str]:
    """A line for each model that executed since the last call, without its end.

    Args:
        ip: The server, as lines name it.
        keys: The models with their versions.
        page: The metrics of the server.
        tracker: By model the counters at the last call, which are renewed.
        timestamp: When the metrics were read, in seconds since 1970.

    Raises:
        MonitorError: If the tracker or the metrics lack a model.
    """
    metrics = {_COUNT: COUNT, **DURATIONS}
    found: dict[Key, dict[str, float]] = {}
    for sample in page:
        key = (sample.labels.get("model", ""), _number(sample.labels.get("version", "")))
        mine = found.setdefault(key, defaultdict(float))
        mine[sample.name] += sample.value if isfinite(sample.value) else 0.0  # instances on several GPUs come apart
    lines = []
    for key in keys:
        mine = found.get(key, {})
        now = {column: round(mine[metric]) if metric in mine else None for column, metric in metrics.items()}
        line = _line(ip, key, now, tracker, timestamp)
        lines += [] if line is None else [line]
    return lines


def _line(
    ip: str, key: Key, now: dict[str, int | None], tracker: dict[str, dict[str, int]], timestamp: float
) -> str | None:
    """The line of a model; `None` where it has executed nothing, or was not looked at before."""
    model, version = key
    if model not in tracker:
        raise MonitorError(f"the tracker lacks model {model}: it has {', '.join(tracker) or 'none'}")
    missing = [column for column, value in now.items() if value is None]
    if missing:
        raise MonitorError(f"the metrics of {ip} lack {', '.join(missing)} of model {model} version {version}")
    counters = {column: value for column, value in now.items() if value is not None}
    before = tracker[model]
    if before and counters[_COUNT] == before[_COUNT]:
        return None  # times go into the line of the next execution
    # A counter that is smaller than before belongs to a server that was started again.
    base = before if before and all(counters[column] >= before[column] for column in counters) else {}
    tracker[model] = counters
    if not before:
        return None
    return ",".join(map(str, (timestamp, ip, model, *(counters[column] - base.get(column, 0) for column in counters))))


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else -1
