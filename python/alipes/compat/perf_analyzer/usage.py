"""The usage: every option, what its value is and what it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from alipes.compat.perf_analyzer.options import GROUPS, OPTIONS, Option

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
        yield from map(_line, (option for option in members if option.is_served and not option.is_old))
        older = [option for option in members if option.is_old]
        if older:
            yield "\tDEPRECATED OPTIONS"
            yield from map(_line, older)
        refused = [option for option in members if not option.is_served]
        if refused:
            yield "\tNOT SERVED"
            yield from map(_line, refused)


def _line(option: Option) -> str:
    return f"\t{option.shown}: {option.about}"
