"""Results as cells of tables for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from alipes.loadtest.comparison import PERCENTILES, Comparison
from alipes.loadtest.level import Level
from alipes.loadtest.ratio import Ratio
from alipes.loadtest.window import Window

__all__ = [
    "HEADINGS",
    "SPARE",
    "STREAM_HEADINGS",
    "comparison_headings",
    "comparison_rows",
    "level_rows",
    "stream_rows",
]

HEADINGS: Final = ("load", "rate", "±", "p50", "p90", "p99", "p99.9", "max", "failed", "")
"""Of levels."""
SPARE: Final = ("p99.9", "max", "p90")
"""Those that a narrow terminal can do without, the least needed first; files and notes have all figures."""
STREAM_HEADINGS: Final = ("load", "responses", "first p50", "first p99", "gap p50", "gap p99")
"""Of levels whose requests go over streams."""


def level_rows(level: Level) -> list[tuple[str, ...]]:
    """The cells of a level, and below them those of each kind of requests where there are several."""
    result = level.result
    spread = "" if math.isnan(level.rate.share) else f"{level.rate.share:.1%}"
    state = "" if level.is_settled or len(level.windows) == 1 else "not settled" if result.answers else "no answer"
    parts = [_row(name, window, "", "") for name, window in level.shares.items()]
    return [_row(str(level.pace), result, spread, state), *parts]


def _row(name: str, window: Window, spread: str, state: str) -> tuple[str, ...]:
    cells = [_ms(window.latencies.percentile_ms(percent)) for percent in PERCENTILES]
    failed = f"{window.failed:,}" if window.failed else ""
    return (name, f"{window.rate:,.0f}/s", spread, *cells, _ms(window.latencies.max_ms), failed, state)


def stream_rows(level: Level) -> list[tuple[str, ...]]:
    """The cells of what streams showed: of the level, else of each kind of requests; none without streams."""
    windows = level.shares or {str(level.pace): level.result}
    rows = []
    for name, window in windows.items():
        if window.streams is None:
            continue
        times = [
            _ms(histogram.percentile_ms(percent))
            for histogram in (window.streams.first, window.streams.gaps)
            for percent in (50, 99)
        ]
        rows.append((name, f"{window.streams.responses / window.seconds:,.0f}/s", *times))
    return rows


def comparison_headings(comparison: Comparison) -> tuple[str, ...]:
    """What stands above the rows of a comparison."""
    return ("", *(one.name for one in comparison.candidates), "ratio", "95 % interval")


def comparison_rows(comparison: Comparison) -> Sequence[tuple[str, ...]]:
    """A row for the rate, and one for each percentile of the latency."""
    cells = []
    for row, ratio in zip(comparison.rows(), comparison.ratios.values(), strict=True):
        is_rate = row["measure"] == "rate"
        sides = [f"{row[side]:,.0f}/s" if is_rate else _ms(row[side]) for side in ("first", "second")]
        cells.append((row["measure"].removesuffix("_ms"), *sides, *_bounds(ratio)))
    return cells


def _ms(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g} ms"


def _bounds(ratio: Ratio) -> tuple[str, str]:
    return (f"{ratio.value:.3f}", f"{ratio.low:.3f} to {ratio.high:.3f}") if ratio.is_known else ("", "")
