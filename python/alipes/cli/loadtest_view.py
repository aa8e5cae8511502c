"""What `alipes loadtest` shows: one line that moves while it runs, then tables."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from alipes.loadtest import Comparison, Level, Measuring, Report, Window
    from alipes.loadtest.pace import Pace

__all__ = ["View", "sparkline"]

_BARS: Final = "▁▂▃▄▅▆▇█"
_MAX_BARS: Final = 20
_MIN_BARS: Final = 5
"""Of each curve, before the end of the line is left out."""
_COLUMNS: Final = 80
"""Of a terminal that does not say."""
_CLEAR: Final = "\r\x1b[K"


class View:
    """What is seen of a load test.

    Args:
        as_json: Whether a program reads it.
        measuring: How long it may take.
    """

    def __init__(self, as_json: bool, measuring: Measuring) -> None:
        """Nothing is shown yet."""
        self._moves = sys.stderr.isatty() and not as_json
        self._as_json = as_json
        self._measuring = measuring

    def begin(self, name: str) -> None:
        """Says what comes first, until there is something to show, on a terminal."""
        self._show(f"{name}: connecting and warming up")

    def window(self, pace: Pace, windows: Sequence[Window]) -> None:
        """The level so far, on a terminal."""
        last, tails = windows[-1], [one.latencies.percentile_ms(99) for one in windows]
        tail = f"p99 {tails[-1]:.3g} ms" if last.answers else f"{last.failed:,} failed"
        self._move(
            str(pace),
            (f"{last.rate:,.0f}/s", [one.rate for one in windows]),
            (tail, tails),
            end=self._progress(windows),
        )

    def _progress(self, windows: Sequence[Window]) -> str:
        """How far a level is."""
        if self._measuring.count is None:
            most = "up to " if self._measuring.ends_early else ""
            return f"window {len(windows)} of {most}{self._measuring.windows}"
        done = sum(one.answers + one.failed for one in windows)
        return f"{done:,} of {self._measuring.count:,} requests"

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
        from alipes.cli.sentences import print_sentence
        from alipes.loadtest.cells import HEADINGS, SPARE, STREAM_HEADINGS, level_rows, stream_rows

        rows = [row for level in levels for row in level_rows(level)]
        print_columns(HEADINGS, rows, right=HEADINGS[:-1], spare=SPARE)
        if streams := [row for level in levels for row in stream_rows(level)]:
            print_columns(STREAM_HEADINGS, streams, right=STREAM_HEADINGS)
        for level in levels:
            for note in level.notes():
                print_sentence(f"{level.pace}: {note}")

    def _comparison(self, comparison: Comparison) -> None:
        """Both sides, their ratios, and the conclusions."""
        from alipes.cli.columns import print_columns
        from alipes.cli.sentences import print_sentence
        from alipes.loadtest.cells import comparison_headings, comparison_rows

        headings = comparison_headings(comparison)
        print_columns(headings, comparison_rows(comparison), right=headings[1:])
        print()
        for sentence in comparison.conclusions():
            print_sentence(f"{sentence}.")

    def _move(self, name: str, *curves: tuple[str, Sequence[float]], end: str = "") -> None:
        """Shows curves behind their last values, in one line of the terminal; its end where there is room for it."""
        if not self._moves:
            return
        words = len(name) + sum(len(text) + 3 for text, _ in curves)
        room = self._width() - 1 - words
        end = f"  {end}" if end and room >= len(end) + 2 + _MIN_BARS * len(curves) else ""
        bars = min(max((room - len(end)) // len(curves), 1), _MAX_BARS)
        self._show(f"{name}: " + "  ".join(f"{text} {sparkline(values, bars)}" for text, values in curves) + end)

    def _show(self, line: str) -> None:
        """Puts a line in the place of the one that is there, on a terminal, however narrow it is."""
        if self._moves:
            print(f"{_CLEAR}{line[: self._width() - 1]}", end="", file=sys.stderr, flush=True)

    def _width(self) -> int:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS


def sparkline(values: Sequence[float], most: int = _MAX_BARS) -> str:
    """The last values as bars between nothing and their largest, so many at most."""
    shown = [value for value in values if not math.isnan(value)][-most:]
    top = max(shown, default=0) or 1
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] for value in shown)
