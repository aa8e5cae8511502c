"""The picture of a soak: for each series its samples, its line after the warm-up, and the slopes of its interval."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

import numpy as np
from numpy.typing import NDArray

from support.soak.finding import Finding
from support.soak.record import Record
from support.soak.table import number

Numbers = NDArray[np.float64]

WIDTH: Final = 910
LEFT, RIGHT = 70, 20
PANEL: Final = 150
TITLE: Final = 26
FOOT: Final = 34
# Of each column of the picture the least and the greatest sample are drawn.
COLUMNS: Final = WIDTH - LEFT - RIGHT
# Bursts may leave their panel at the top, so that the rest can be seen.
SHOWN: Final = (2, 97)
SAMPLES, LINE, BAD, EDGE = "#8fa3ad", "#2f6f8f", "#b3402a", "#d9dfe2"
STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#20262b} .title{font-weight:600} .note,.tick{fill:#66717a} "
    ".tick{font-size:11px} .grows{fill:#b3402a;font-weight:600}"
)


class _Panel:
    """Where a series is drawn, and how its values become places."""

    def __init__(self, top: float, hours: float, least: float, greatest: float) -> None:
        self._top = top
        self._hours = hours or 1.0
        self._least = least
        self._span = (greatest - least) or 1.0

    def x(self, hours: float) -> float:
        return LEFT + COLUMNS * hours / self._hours

    def y(self, value: float) -> float:
        share = min(max((value - self._least) / self._span, -0.02), 1.02)
        return self._top + PANEL * (1 - share)


def svg(record: Record, found: Sequence[Finding]) -> str:
    """The picture as an SVG document."""
    parts: list[str] = []
    top = 0
    for finding in found:
        parts += _series(record, finding, top)
        top += TITLE + PANEL + FOOT
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}" '
        f'role="img" aria-label="What a server took while it was soaked, with slopes per hour">\n'
        f'<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{top}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _series(record: Record, finding: Finding, top: int) -> list[str]:
    hours, values = record.column(finding.series.name)
    parts = [_title(finding, top + TITLE - 8)]
    if not len(values):
        return parts
    values = values / finding.series.scale
    least, greatest = _range(values)
    panel = _Panel(top + TITLE, record.seconds / 3600, least, greatest)
    parts += _frame(panel, record.seconds / 3600, finding.warm_up_s / 3600, top + TITLE, (least, greatest))
    parts.append(f'<polyline points="{_curve(panel, hours, values)}" fill="none" stroke="{SAMPLES}"/>')
    return parts + _lines(panel, finding, record.seconds / 3600)


def _title(finding: Finding, y: float) -> str:
    slope, unit = finding.slope, finding.series.unit
    note = "too few samples for a slope"
    if slope is not None:
        interval = f"{number(slope.low, sign='+')} to {number(slope.high, sign='+')}"
        note = f"{number(slope.per_hour, sign='+')} {unit} per hour, 95 % within {interval}"
    verdict = f'<tspan class="{"grows" if finding.verdict == "grows" else "note"}">{finding.verdict}</tspan>'
    title = f'<tspan class="title">{escape(finding.series.title)}</tspan> <tspan class="note">({escape(unit)})</tspan>'
    return f'<text x="{LEFT}" y="{y}">{title}: {escape(note)}; {verdict}</text>'


def _range(values: Numbers) -> tuple[float, float]:
    """What is shown of the values, with some room; never so little that noise looks like a mountain."""
    least, greatest = (float(bound) for bound in np.percentile(values, SHOWN))
    room = max(0.1 * (greatest - least), 0.02 * abs(greatest), 1e-3)
    return max(least - room, 0.0), greatest + room


def _frame(panel: _Panel, hours: float, warm_up_hours: float, top: float, bounds: tuple[float, float]) -> list[str]:
    """The panel, its warm-up in grey, and what its edges stand for."""
    warm = panel.x(min(hours, warm_up_hours)) - LEFT
    ticks = [
        f'<text class="tick" text-anchor="end" x="{LEFT - 6}" y="{panel.y(bound) + 4:.1f}">{number(bound)}</text>'
        for bound in bounds
    ]
    for share, anchor in ((0.0, "start"), (0.25, "middle"), (0.5, "middle"), (0.75, "middle"), (1.0, "end")):
        place = f'x="{panel.x(hours * share):.1f}" y="{top + PANEL + 15:.1f}"'
        ticks.append(f'<text class="tick" text-anchor="{anchor}" {place}>{_time(hours * share * 60)}</text>')
    return [
        f'<rect x="{LEFT}" y="{top}" width="{warm:.1f}" height="{PANEL}" fill="#f3f5f6"/>',
        f'<rect x="{LEFT}" y="{top}" width="{COLUMNS}" height="{PANEL}" fill="none" stroke="{EDGE}"/>',
        *ticks,
    ]


def _time(minutes: float) -> str:
    if minutes < 2:
        return f"{minutes * 60:.0f} s"
    return f"{minutes:.1f} min" if minutes < 10 else f"{minutes:.0f} min"


def _curve(panel: _Panel, hours: Numbers, values: Numbers) -> str:
    """The samples; where there are many, the least and the greatest of each column."""
    columns = np.array_split(np.arange(len(values)), min(COLUMNS, len(values)))
    chosen = sorted({int(of[at(values[of])]) for of in columns for at in (np.argmin, np.argmax)})
    return " ".join(f"{panel.x(hours[one]):.1f},{panel.y(values[one]):.1f}" for one in chosen)


def _lines(panel: _Panel, finding: Finding, hours: float) -> list[str]:
    """The band between the least and the greatest slope, and the line."""
    slope = finding.slope
    if slope is None:
        return []
    colour = BAD if finding.verdict == "grows" else LINE
    ends = (finding.warm_up_s / 3600, hours)

    def points(per_hour: float, at: Sequence[float]) -> str:
        return " ".join(f"{panel.x(one):.1f},{panel.y(slope.at(one, per_hour)):.1f}" for one in at)

    middle = slope.middle_hours
    return [
        f'<polygon points="{points(slope.low, (ends[0], middle))} {points(slope.high, (ends[0],))}" '
        f'fill="{colour}" opacity="0.2"/>',
        f'<polygon points="{points(slope.high, (middle, ends[1]))} {points(slope.low, (ends[1],))}" '
        f'fill="{colour}" opacity="0.2"/>',
        f'<polyline points="{points(slope.per_hour, ends)}" fill="none" stroke="{colour}" stroke-width="2"/>',
    ]
