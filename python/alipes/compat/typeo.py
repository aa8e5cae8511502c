"""Names of `hermes.typeo`, which left hermes in 2022: those of the package `typeo` where it is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final

from alipes.compat.absent import absent

__all__: list[str] = []

_REASON: Final = (
    "it left hermes in 2022 and has nothing to do with serving; `pip install hermes.typeo` brings it back, beside "
    "these names"
)
# The package that came later calls its decorator otherwise.
_NAMES: Final = {"spoof": ("spoof",), "typeo": ("typeo", "scriptify")}


def __getattr__(name: str) -> object:
    """The name out of an installed `typeo`, or what says on use which package to install."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no name {name!r}")
    if find_spec("typeo") is not None:
        package = import_module("typeo")
        for found in _NAMES[name]:
            if hasattr(package, found):
                return getattr(package, found)
    return absent("hermes.typeo", name, _REASON)
