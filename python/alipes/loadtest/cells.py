"""Results as cells of tables for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from alipes.loadtest.comparison import PERCENTILES, Comparison
from alipes.loadtest.level import Level
from alipes.loadtest.ratio import Ratio

__all__ = ["HEADINGS", "SPARE", "comparison_headings", "comparison_rows", "level_row"]

HEADINGS: Final = ("load", "rate", "±", "p50", "p90", "p99", "p99.9", "max", "failed", "")
"""Of levels."""
SPARE: Final = ("p99.9", "max", "p90")
"""Those that a narrow terminal can do without, the least needed first; files and notes have all figures."""


def level_row(level: Level) -> tuple[str, ...]:
    """The cells of a level."""
    result, rate = level.result, level.rate
    cells = [_ms(result.latencies.percentile_ms(percent)) for percent in PERCENTILES]
    share = "" if math.isnan(rate.share) else f"{rate.share:.1%}"
    state = "" if level.is_settled or len(level.windows) == 1 else "not settled" if result.answers else "no answer"
    failed = f"{result.failed:,}" if result.failed else ""
    return (str(level.pace), f"{result.rate:,.0f}/s", share, *cells, _ms(result.latencies.max_ms), failed, state)


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
