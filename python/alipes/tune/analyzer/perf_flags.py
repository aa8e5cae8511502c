"""Flags of perf_analyzer in Model Analyzer's options: those that say what is sent, those that do nothing here."""

from __future__ import annotations

from typing import Any

from alipes.compat.perf_analyzer.data_options import read_data
from alipes.compat.perf_analyzer.failures import OptionFailed
from alipes.compat.perf_analyzer.parser import parse
from alipes.compat.perf_analyzer.settings import SentData
from alipes.compat.perf_analyzer.words import Words
from alipes.errors import ConfigError
from alipes.tune.analyzer.document import OptionsDocument
from alipes.tune.analyzer.options import PERF_FLAGS_OF_DATA, PERF_FLAGS_WITHOUT_EFFECT

__all__ = ["ignored_flags", "sent_data"]

_OPTION = "perf_analyzer_flags"


def ignored_flags(document: OptionsDocument, flags: Any) -> list[str]:
    """The flags that say how long and how it measures.

    Raises:
        ConfigError: If there is one without which other figures would come out.
    """
    known = {*PERF_FLAGS_OF_DATA, *PERF_FLAGS_WITHOUT_EFFECT}
    named = _named(document, flags)
    if unknown := [name for name in named if name not in known]:
        raise ConfigError(
            f"option '{_OPTION}' has '{unknown[0]}', which is not offered, and the figures depend on it",
            path=document.path,
            key=_OPTION,
            hint="leave the flag out, or search with `alipes tune`",
        )
    return [name for name in named if name in PERF_FLAGS_WITHOUT_EFFECT]


def sent_data(document: OptionsDocument, flags: Any) -> SentData | None:
    """What is sent, as perf_analyzer reads the flags; none where none of them says it.

    Raises:
        ConfigError: If a value cannot be read, or a file is not there.
    """
    words = [
        f"--{name}={one}"
        for name, value in _named(document, flags).items()
        if name in PERF_FLAGS_OF_DATA
        for one in (value if isinstance(value, list) else [value])
    ]
    if not words:
        return None
    try:
        return read_data(Words(parse(words)))
    except OptionFailed as error:
        raise ConfigError(f"option '{_OPTION}': {error}", path=document.path, key=_OPTION) from error


def _named(document: OptionsDocument, flags: Any) -> dict[str, Any]:
    """Values by name in perf_analyzer's spelling; one that is false is not given."""
    flags = flags or {}
    if not isinstance(flags, dict):
        raise document.wrong(_OPTION, "has values by name", flags)
    return {
        str(name).replace("_", "-"): value for name, value in flags.items() if not (value is None or value is False)
    }
