"""Pictures of a monitor's record and of a stream's output, for notebooks and files; needs the extra `plots`.

Each function gives a figure of matplotlib that a notebook shows by itself, and writes it to a file where one is named.
No state of `pyplot` is used or changed. Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = ["plot_monitor", "plot_stream"]

if TYPE_CHECKING:
    from alipes.plots.record import plot_monitor
    from alipes.plots.stream import plot_stream

_HOMES = {"plot_monitor": "alipes.plots.record", "plot_stream": "alipes.plots.stream"}

__getattr__, __dir__ = lazily(__name__, _HOMES)
