"""Answers to the import names of hermes, once called gravswell, in scripts that are to run unchanged.

`import alipes.compat.hermes` at a script's top does it, or `python -m alipes.compat hermes script.py` for one that
must not be changed. It happens only on request; and a hermes that is installed stays what it is, whether it was
installed before or after.
"""

from __future__ import annotations

import sys
import warnings

from alipes.compat.finder import AliasFinder, installed_elsewhere
from alipes.compat.names import MODULES, ROOTS
from alipes.repository.export.leniency import warn_by_default

__all__ = ["install", "uninstall"]

_finder = AliasFinder(MODULES, ROOTS)


def install() -> None:
    """Answer to these names from now on, in this process. Importing this module does it.

    Warns:
        RuntimeWarning: If a package of one of the names is installed: it is the one that imports go on to find.
    """
    if _finder in sys.meta_path:
        return
    for root in sorted(ROOTS):
        if (place := installed_elsewhere(root)) is not None:
            warnings.warn(
                f"a package '{root}' is installed ({place}): imports of it go there, not to alipes",
                RuntimeWarning,
                stacklevel=3,
            )
    # Last: nothing that is installed is ever hidden.
    sys.meta_path.append(_finder)
    # hermes never ran what it exported, so its scripts do not expect to be refused.
    warn_by_default("hermes", True)


def uninstall() -> None:
    """Stops answering imports; modules that were imported stay."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder.forget()
    warn_by_default("hermes", False)


install()
