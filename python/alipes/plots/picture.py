"""A figure that shows itself."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from alipes.errors import Unsupported

__all__ = [
    "COLOURS",
    "PAGE_STYLE",
    "PANEL_INCHES",
    "element",
    "finish",
    "label_decades",
    "marker",
    "panel",
    "panels",
    "picture",
]

COLOURS: Final = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d", "#666666")
"""Colours that most eyes can distinguish, also on paper."""

_FEW_POINTS: Final = 60
"""Up to so many points of a line are marked: a line through one point alone is not to be seen."""

_INCHES: Final = (8.0, 4.0)
_DOTS_AN_INCH: Final = 120

PANEL_INCHES: Final = (4.6, 3.4)
"""Of a picture on a page: its letters can be read where it takes the width of a telephone."""

_FEWEST_LABELS: Final = 2
"""Labels of an axis: one alone says no scale."""

PAGE_STYLE: Final = """
:root { color-scheme: light dark }
body { color: #222; background: #fff }
div.wide { overflow-x: auto; overflow-wrap: break-word }
th, td { white-space: nowrap }
div.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem }
svg { max-width: 100%; height: auto }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #121212 }
  a { color: #8ab4f8 }
  svg { filter: invert(.93) hue-rotate(180deg) }
}
"""
"""What pages with pictures share: they fit a narrow window, and follow a browser's dark mode."""


def picture() -> Any:
    """An empty figure.

    Raises:
        Unsupported: If matplotlib is not installed.
    """
    try:
        figures: Any = import_module("matplotlib.figure")
    except ImportError as error:
        raise Unsupported("pictures need matplotlib: install it with `pip install 'alipes[plots]'`") from error

    class Picture(figures.Figure):  # type: ignore[misc]  # a class that is known once matplotlib is
        """A figure that a notebook shows without `pyplot`."""

        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png", dpi=_DOTS_AN_INCH)
            return file.getvalue()

    return Picture(figsize=_INCHES, layout="constrained")


def marker(points: int, shape: str = "o") -> str | None:
    """What marks the points of a line: nothing where there are many, which would hide the line."""
    return shape if points <= _FEW_POINTS else None


def finish(figure: Any, path: str | os.PathLike[str] | None) -> Any:
    """Writes the figure to a file, where one is named, in the format that its name says; gives the figure."""
    if path is not None:
        figure.savefig(Path(path), dpi=_DOTS_AN_INCH)
    return figure


def panel() -> Any:
    """An empty figure for one axis, as pages have several side by side.

    Raises:
        Unsupported: If matplotlib is not installed.
    """
    figure = picture()
    figure.set_size_inches(*PANEL_INCHES)
    return figure


def element(figure: Any) -> str:
    """The figure as an element of a page."""
    matplotlib: Any = import_module("matplotlib")
    text = io.StringIO()
    # Text stays text, and the same figures give the same bytes.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "alipes"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def panels(figures: Iterable[Any]) -> str:
    """Figures as an element of a page: side by side where there is room, below each other on a telephone."""
    return f'<div class="panels">{"".join(map(element, figures))}</div>'


def label_decades(axis: Any) -> None:
    """Labels a logarithmic axis with numbers such as 0.5, with two of them at least."""
    ticker: Any = import_module("matplotlib.ticker")
    low, high = sorted(axis.get_view_interval())
    for locator in (ticker.LogLocator(), ticker.LogLocator(subs=(1, 2, 5)), ticker.MaxNLocator(4)):
        axis.set_major_locator(locator)
        if sum(low <= place <= high for place in axis.get_majorticklocs()) >= _FEWEST_LABELS:
            break
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())
