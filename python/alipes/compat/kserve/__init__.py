"""Answers to the import names of the KServe SDK, once called kfserving, in scripts that are to run unchanged.

`import alipes.compat.kserve` at a script's top does it, or `python -m alipes.compat kserve script.py` for one that must
not be changed. It happens only on request; and a package `kserve` that is installed stays what it is.
"""

from __future__ import annotations

from alipes.compat.finder import AliasFinder
from alipes.compat.kserve.names import MODULES, ROOTS

__all__ = ["install", "uninstall"]

_finder = AliasFinder(MODULES, ROOTS)


def install() -> None:
    """Answer to these names from now on, in this process. Importing this package does it.

    Warns:
        RuntimeWarning: If a package of one of the names is installed: it is what imports go on to find.
    """
    _finder.answer()


def uninstall() -> None:
    """Stop answering imports; modules that were imported stay."""
    _finder.retire()


install()
