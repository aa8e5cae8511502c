"""Answers to the import names of hermes, once called gravswell, in scripts that are to run unchanged.

`import alipes.compat.hermes` at a script's top does it, or `python -m alipes.compat hermes script.py` for one that
must not be changed. It happens only on request; and a hermes that is installed stays what it is, whether it was
installed before or after.
"""

from __future__ import annotations

from alipes.compat.finder import AliasFinder
from alipes.compat.names import MODULES, MOVED, ROOTS
from alipes.repository.export.leniency import warn_by_default

__all__ = ["install", "uninstall"]

_finder = AliasFinder(MODULES, ROOTS, MOVED)


def install() -> None:
    """Answer to these names from now on, in this process. Importing this module does it.

    Warns:
        RuntimeWarning: If a package of one of the names is installed: it is the one that imports go on to find.
    """
    _finder.answer()
    # hermes never ran what it exported, so its scripts do not expect to be refused.
    warn_by_default("hermes", True)


def uninstall() -> None:
    """Stops answering imports; modules that were imported stay."""
    _finder.retire()
    warn_by_default("hermes", False)


install()
