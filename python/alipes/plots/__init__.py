"""Pictures of a monitor's record and of a stream's output, for notebooks and files; needs the extra `plots`.

Each function gives a figure of matplotlib that a notebook shows by itself, and writes it to a file where one is named.
No state of `pyplot` is used or changed. Names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["plot_monitor", "plot_stream"]

if TYPE_CHECKING:
    from alipes.plots.record import plot_monitor
    from alipes.plots.stream import plot_stream

_HOMES = {"plot_monitor": "record", "plot_stream": "stream"}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
