"""The usage: every option with what its value is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from alipes.compat.perf_analyzer.options import GROUPS, OPTIONS

__all__ = ["USAGE", "usage"]

USAGE: Final = "Usage: perf_analyzer [options]"
_NUMERALS: Final = ("", "I", "II", "III", "IV")


def usage() -> str:
    """All of it."""
    return "\n".join([USAGE, "==== SYNOPSIS ====", *_lines()])


def _lines() -> Iterator[str]:
    for group, heading in enumerate(GROUPS):
        yield f"\n{_NUMERALS[group]}. {heading}:" if heading else ""
        members = [option for option in OPTIONS if option.group == group]
        yield from (f"\t{option.shown}" for option in members if not option.refused and not option.deprecated)
        older = [option for option in members if option.deprecated]
        if older:
            yield "\tDEPRECATED OPTIONS"
            yield from (f"\t{option.shown}: use {option.deprecated}" for option in older)
        refused = [option for option in members if option.refused]
        if refused:
            yield "\tNOT SERVED"
            yield from (f"\t{option.shown}: {option.refused}" for option in refused)
