"""The page of a comparison: a table and pictures, in one HTML file that needs no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import numpy as np

from alipes.autoscale.figures import DayFigures
from alipes.autoscale.simulation import SimulatedDay
from alipes.autoscale.table import HEADINGS, cells
from alipes.errors import Unsupported
from alipes.plots.picture import COLOURS, PAGE_STYLE, panel, panels

__all__ = ["comparison_page"]

_STYLE: Final = f"""
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }}
table {{ border-collapse: collapse; font-size: 13px; margin: 1rem 0 }}
th, td {{ padding: .2rem .6rem; text-align: right }}
th {{ border-bottom: 1px solid #999 }} td:first-child, th:first-child {{ text-align: left }}
{PAGE_STYLE}"""
_POINTS: Final = 480
"""Of a line: a picture has no more pixels for them."""
_UNITS: Final = ((2 * 3600, 3600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))


def comparison_page(days: Mapping[str, SimulatedDay], figures: Mapping[str, DayFigures], about: Sequence[str]) -> str:
    """The whole file.

    Args:
        days: By the name of the scaler.
        figures: The same days in figures.
        about: Sentences on what was simulated.
    """
    title = "A day, replayed"
    head = (
        f'<meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    )
    rows = "".join(_row("td", (name, *cells(one))) for name, one in figures.items())
    body = "\n".join(
        [
            f"<h1>{title}</h1>",
            *(f"<p>{escape(sentence)}</p>" for sentence in about),
            f'<div class="wide"><table>{_row("th", ("scaler", *HEADINGS))}{rows}</table></div>',
            _drawing(days),
        ]
    )
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def _row(tag: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"


def _drawing(days: Mapping[str, SimulatedDay]) -> str:
    """The pictures as SVG; without matplotlib a sentence in their place."""
    try:
        return panels([_requests(days), _replicas(days), _latencies(days)])
    except Unsupported as error:
        return f"<p>{escape(str(error))}</p>"


def _panel(title: str, up: str, seconds: int) -> tuple[Any, Any, float]:
    """A figure, its axes, and how many seconds a unit of its width has."""
    _, size, unit = next(one for one in _UNITS if seconds >= one[0])
    figure = panel()
    axes = figure.add_subplot()
    axes.set(title=title, xlabel=unit, ylabel=up)
    return figure, axes, size


def _requests(days: Mapping[str, SimulatedDay]) -> Any:
    arrived = next(iter(days.values())).arrived
    figure, axes, unit = _panel("Requests", "per second", len(arrived))
    starts, parts = _parts(arrived)
    axes.fill_between(starts / unit, [part.mean() for part in parts], step="post", color=COLOURS[7], alpha=0.5)
    axes.set_ylim(bottom=0)
    return figure


def _replicas(days: Mapping[str, SimulatedDay]) -> Any:
    figure, axes, unit = _panel("Replicas, with those that start", "replicas", len(next(iter(days.values())).arrived))
    for colour, (name, day) in zip(COLOURS, days.items(), strict=False):
        starts, parts = _parts(day.replicas)
        axes.step(starts / unit, [part.max() for part in parts], where="post", color=colour, label=name, linewidth=1)
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", fontsize="small")
    return figure


def _latencies(days: Mapping[str, SimulatedDay]) -> Any:
    figure, axes, unit = _panel("Longest latency", "seconds", len(next(iter(days.values())).arrived))
    for colour, (name, day) in zip(COLOURS, days.items(), strict=False):
        came = np.where(day.arrived[:, None] > 0, day.latencies_s, 0.0)
        starts, parts = _parts(np.nan_to_num(came.max(axis=1), posinf=0.0))
        axes.step(starts / unit, [part.max() for part in parts], where="post", color=colour, label=name, linewidth=1)
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", fontsize="small")
    return figure


def _parts(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], list[np.ndarray[Any, Any]]]:
    """Where parts of a day begin, and what each has."""
    parts = np.array_split(values, min(len(values), _POINTS))
    return np.cumsum([0, *(len(part) for part in parts[:-1])]), parts
