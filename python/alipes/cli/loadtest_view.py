"""What `alipes loadtest` shows: one line that moves while it runs, then tables."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from alipes.loadtest import Comparison, Level, Report, Window
    from alipes.loadtest.pace import Pace

__all__ = ["View", "sparkline"]

_BARS: Final = "▁▂▃▄▅▆▇█"
_MAX_BARS: Final = 20
_COLUMNS: Final = 80
"""Of a terminal that does not say."""
_CLEAR: Final = "\r\x1b[K"


class View:
    """What is seen of a load test.

    Args:
        as_json: Whether a program reads it.
    """

    def __init__(self, as_json: bool) -> None:
        """Nothing is shown yet."""
        self._moves = sys.stderr.isatty() and not as_json
        self._as_json = as_json

    def window(self, pace: Pace, windows: Sequence[Window]) -> None:
        """The level so far, on a terminal."""
        tails = [one.latencies.percentile_ms(99) for one in windows]
        self._move(
            str(pace),
            (f"{windows[-1].rate:,.0f}/s", [one.rate for one in windows]),
            (f"p99 {tails[-1]:.3g} ms", tails),
        )

    def round(self, comparison: Comparison) -> None:
        """The comparison so far, on a terminal."""
        rates = [[window.rate for window in one] for one in comparison.windows]
        self._move(f"round {comparison.rounds}", *((f"{one[-1]:,.0f}/s", one) for one in rates))

    def clear(self) -> None:
        """Takes the moving line away."""
        if self._moves:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def show(self, result: Report | Comparison) -> None:
        """All that was measured."""
        from alipes.loadtest import Report

        self.clear()
        if self._as_json:
            print(json.dumps(result.to_dict(), indent=2, allow_nan=False))
        elif isinstance(result, Report):
            self._levels(result.levels)
        else:
            self._comparison(result)

    def _levels(self, levels: Sequence[Level]) -> None:
        """The table, and what has to be known of it."""
        from alipes.cli.columns import print_columns
        from alipes.loadtest.cells import HEADINGS, level_row

        print_columns(HEADINGS, [level_row(level) for level in levels], right=HEADINGS[:-1])
        for level in levels:
            for note in level.notes():
                print(f"{level.pace}: {note}")

    def _comparison(self, comparison: Comparison) -> None:
        """Both sides, their ratios, and the conclusions."""
        from alipes.cli.columns import print_columns
        from alipes.loadtest.cells import comparison_headings, comparison_rows

        headings = comparison_headings(comparison)
        print_columns(headings, comparison_rows(comparison), right=headings[1:])
        print()
        for sentence in comparison.conclusions():
            print(f"{sentence}.")

    def _move(self, name: str, *curves: tuple[str, Sequence[float]]) -> None:
        """Shows curves behind their last values, in one line of the terminal, however narrow it is."""
        if not self._moves:
            return
        width = os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS
        words = len(name) + sum(len(text) + 3 for text, _ in curves)
        bars = min(max((width - 1 - words) // len(curves), 1), _MAX_BARS)
        line = f"{name}: " + "  ".join(f"{text} {sparkline(values, bars)}" for text, values in curves)
        print(f"{_CLEAR}{line[: width - 1]}", end="", file=sys.stderr, flush=True)


def sparkline(values: Sequence[float], most: int = _MAX_BARS) -> str:
    """The last values as bars between nothing and their largest, so many at most."""
    shown = [value for value in values if not math.isnan(value)][-most:]
    top = max(shown, default=0) or 1
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] for value in shown)
