"""Answers to the import names of PyTriton, in scripts that are to run unchanged.

`import alipes.compat.pytriton` at a script's top does it, or `python -m alipes.compat pytriton script.py` for one that
must not be changed. It happens only on request; and a PyTriton that is installed stays what it is.
"""

from __future__ import annotations

from alipes.compat.finder import AliasFinder
from alipes.compat.pytriton.names import MODULES, ROOT

__all__ = ["install", "uninstall"]

_finder = AliasFinder(MODULES, [ROOT])


def install() -> None:
    """Answer to these names from now on, in this process. Importing this package does it.

    Warns:
        RuntimeWarning: If PyTriton is installed: it is what imports go on to find.
    """
    _finder.answer()


def uninstall() -> None:
    """Stop answering imports; modules that were imported stay."""
    _finder.retire()


install()
