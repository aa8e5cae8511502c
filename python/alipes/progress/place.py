"""Where a line can be shown."""

from __future__ import annotations

import os
import sys
from enum import Enum, auto
from typing import Final

__all__ = ["VARIABLE", "Place", "place"]

VARIABLE: Final = "ALIPES_PROGRESS"
"""The environment variable with which the user of a script turns progress off."""

_OFF: Final = frozenset({"0", "false", "no", "off"})


class Place(Enum):
    """What becomes of a line."""

    NOWHERE = auto()
    TERMINAL = auto()
    NOTEBOOK = auto()


def place() -> Place:
    """Where lines are shown now."""
    if os.environ.get(VARIABLE, "").strip().lower() in _OFF:
        return Place.NOWHERE
    if _in_notebook():
        return Place.NOTEBOOK
    try:
        on_terminal = sys.stderr.isatty()
    except (AttributeError, ValueError):  # none at all, or closed
        return Place.NOWHERE
    # A dumb terminal cannot take a line back.
    return Place.TERMINAL if on_terminal and os.environ.get("TERM") != "dumb" else Place.NOWHERE


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook. IPython is not imported: a kernel has it already."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
