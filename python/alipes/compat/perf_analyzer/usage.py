"""The usage: every option, what its value is and what it does."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from alipes.compat.perf_analyzer.options import GROUPS, OPTIONS, Option

__all__ = ["USAGE", "usage"]

USAGE: Final = "Usage: perf_analyzer [options]"
_NUMERALS: Final = ("", "I", "II", "III", "IV")
_WRAPPER: Final = textwrap.TextWrapper(
    width=80 - 8, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
)
"""For a terminal of 80 columns, of which the tab in front takes eight."""


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
    return "\n".join(f"\t{line}" for line in _WRAPPER.wrap(f"{option.shown}: {option.about}"))
