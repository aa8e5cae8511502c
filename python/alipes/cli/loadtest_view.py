"""What `alipes loadtest` shows: one line that moves while it runs, then tables."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from alipes.loadtest import Comparison, Level, Ratio, Window
    from alipes.loadtest.pace import Pace

__all__ = ["View", "sparkline"]

_HEADINGS: Final = ("load", "rate", "±", "p50", "p90", "p99", "p99.9", "max", "failed", "")
_BARS: Final = "▁▂▃▄▅▆▇█"
_CLEAR: Final = "\r\x1b[K"


class View:
    """What is seen of a load test.

    Args:
        silent: Whether only a program reads it.
    """

    def __init__(self, silent: bool) -> None:
        """Nothing is shown yet."""
        self._moves = sys.stderr.isatty() and not silent
        self._silent = silent

    def window(self, pace: Pace, windows: Sequence[Window]) -> None:
        """The level so far, on a terminal."""
        last = windows[-1]
        self._move(
            f"{pace}: {last.rate:,.0f}/s {sparkline([one.rate for one in windows])}  "
            f"p99 {last.latencies.percentile_ms(99):.3g} ms "
            f"{sparkline([one.latencies.percentile_ms(99) for one in windows])}"
        )

    def round(self, comparison: Comparison) -> None:
        """The comparison so far, on a terminal."""
        rates = [f"{one[-1].rate:,.0f}/s {sparkline([each.rate for each in one])}" for one in comparison.windows]
        self._move(f"round {comparison.rounds}: {'  '.join(rates)}")

    def clear(self) -> None:
        """Takes the moving line away."""
        if self._moves:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def levels(self, levels: Sequence[Level]) -> None:
        """The table, and what has to be known of it."""
        self.clear()
        if self._silent or not levels:
            return
        from alipes.cli.columns import print_columns

        print_columns(_HEADINGS, [_row(level) for level in levels], right=_HEADINGS[:-1])
        for level in levels:
            for note in level.notes():
                print(f"{level.pace}: {note}")

    def comparison(self, comparison: Comparison) -> None:
        """Both sides, their ratios, and the conclusions."""
        self.clear()
        if self._silent:
            return
        from alipes.cli.columns import print_columns

        names = [one.name for one in comparison.candidates]
        headings = ("", *names, "ratio", "95 % interval")
        print_columns(headings, list(_ratios(comparison)), right=headings[1:])
        print()
        for sentence in comparison.conclusions():
            print(f"{sentence}.")

    def _move(self, line: str) -> None:
        if self._moves:
            width = shutil.get_terminal_size().columns
            print(f"{_CLEAR}{line[: width - 1]}", end="", file=sys.stderr, flush=True)


def sparkline(values: Sequence[float]) -> str:
    """The last values as bars between nothing and their largest."""
    shown = [value for value in values if not math.isnan(value)][-20:]
    top = max(shown, default=0) or 1
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] for value in shown)


def _row(level: Level) -> tuple[str, ...]:
    result, rate = level.result, level.rate
    cells = [f"{result.latencies.percentile_ms(percent):.3g} ms" for percent in (50, 90, 99, 99.9)]
    share = "" if math.isnan(rate.share) else f"{rate.share:.1%}"
    state = "" if level.is_settled or len(level.windows) == 1 else "not settled"
    return (
        str(level.pace), f"{result.rate:,.0f}/s", share, *cells, f"{result.latencies.max_ms:.3g} ms",
        f"{result.failed:,}" if result.failed else "", state,
    )  # fmt: skip


def _ratios(comparison: Comparison) -> Sequence[tuple[str, ...]]:
    from alipes.loadtest.comparison import PERCENTILES

    results = [level.result for level in comparison.levels]
    rows = [("rate", *(f"{result.rate:,.0f}/s" for result in results), *_bounds(comparison.rate))]
    for percent in PERCENTILES:
        times = (f"{result.latencies.percentile_ms(percent):.3g} ms" for result in results)
        rows.append((f"p{percent:g}", *times, *_bounds(comparison.latency(percent))))
    return rows


def _bounds(ratio: Ratio) -> tuple[str, str]:
    return (f"{ratio.value:.3f}", f"{ratio.low:.3f} to {ratio.high:.3f}") if ratio.is_known else ("", "")
