"""A figure that shows itself."""

from __future__ import annotations

import io
import os
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from alipes.errors import Unsupported

__all__ = ["COLOURS", "finish", "marker", "picture"]

COLOURS: Final = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d", "#666666")
"""Colours that most eyes can distinguish, also on paper."""

_FEW_POINTS: Final = 60
"""Up to so many points of a line are marked: a line through one point alone is not to be seen."""

_INCHES: Final = (8.0, 4.0)
_DOTS_AN_INCH: Final = 120


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
