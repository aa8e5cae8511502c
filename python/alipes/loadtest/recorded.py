"""Rates that were recorded, such as those of a day, from a file."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

from alipes.errors import ConfigError

__all__ = ["read_rates"]

_MAX_LINES: Final = 100_000
"""Most lines of a file: a day has 86,400 seconds."""
_WANTED: Final = "expected lines of time,rate, such as 3600,250 or 2026-01-31T08:00:00,250"


def read_rates(file: Path, compress: float, scale: float) -> tuple[tuple[float, float, float], ...]:
    """Pieces of a schedule: seconds, and requests per second at the beginning and at the end of each.

    Raises:
        ConfigError: If the file cannot be read, or holds no rates.
    """
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"'{file}' cannot be read: {error}; {_WANTED}") from error
    if len(lines) > _MAX_LINES:
        raise ConfigError(f"'{file}' has {len(lines):,} lines, more than {_MAX_LINES:,}: take means of longer spans")
    points = [_point(file, number, line) for number, line in enumerate(lines, start=1) if number > 1 or _is_data(line)]
    if len(points) < 2:
        raise ConfigError(f"'{file}' holds {len(points)} rates: a schedule takes two at least; {_WANTED}")
    for (before, _), (after, _) in pairwise(points):
        if not after > before:
            raise ConfigError(f"the times of '{file}' do not ascend: {after:g} follows {before:g}")
    if not any(rate for _, rate in points):
        raise ConfigError(f"all rates of '{file}' are 0: nothing would be sent")
    return tuple(
        ((after - before) / compress, first * scale, last * scale)
        for (before, first), (after, last) in pairwise(points)
    )


def _is_data(line: str) -> bool:
    """Whether a first line has a rate, and no names of columns."""
    try:
        float(line.rsplit(",", maxsplit=1)[-1])
    except ValueError:
        return False
    return True


def _point(file: Path, number: int, line: str) -> tuple[float, float]:
    try:
        time, rate = line.split(",")
        point = _seconds(time.strip()), float(rate)
    except ValueError as error:
        raise ConfigError(f"line {number} of '{file}' is {line[:80]!r}: {_WANTED}") from error
    if not 0 <= point[1] < float("inf"):
        raise ConfigError(f"line {number} of '{file}' has the rate {point[1]}: expected requests per second, 0 or more")
    return point


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text).timestamp()
