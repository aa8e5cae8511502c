"""Every request of a run, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from alipes.compat.perf_analyzer.level import MeasuredLevel
from alipes.compat.perf_analyzer.settings import Settings

__all__ = ["missing_requests", "write_profile"]


def write_profile(path: Path, levels: Sequence[MeasuredLevel], settings: Settings, version: str) -> None:
    """Writes the requests of all levels.

    Raises:
        OSError: If the file cannot be written, or is there already.
    """
    with path.open("x", encoding="utf-8") as file:
        file.write('{"experiments":[')
        for number, level in enumerate(levels):
            file.write("," if number else "")
            file.writelines(_experiment(level, settings))
        tail = {"version": version, "service_kind": settings.target.kind, "endpoint": settings.target.endpoint}
        file.write(f"],{json.dumps(tail)[1:]}\n")


def missing_requests(levels: Sequence[MeasuredLevel]) -> int:
    """Requests for which there was no room."""
    return sum(part.missing for level in levels for window in level.windows for part in window.requests)


def _experiment(level: MeasuredLevel, settings: Settings) -> Iterator[str]:
    by_count = settings.load.mode in ("concurrency", "periodic")
    mode = "concurrency" if by_count else "request_rate"
    value: float = int(level.value) if by_count else level.value
    if settings.load.mode == "periodic":
        value = 1  # as the original has it: the concurrency is another one in each wave
    yield f'{{"experiment":{json.dumps({"mode": mode, "value": value})},"requests":['
    before = ""
    for window in level.windows:
        for part in window.requests:
            for request in part.documents():
                yield before + json.dumps(request, separators=(",", ":"))
                before = ","
    starts = [window.begun_ns for window in level.windows]
    yield f'],"window_boundaries":{json.dumps(starts)}}}'
