"""The name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Final

__all__ = ["ALIKE", "MISSPELLED", "nearest", "nearest_first"]

_SHOWN: Final = 10
_COMES_CLOSE: Final = 0.6
ALIKE: Final = 0.65
"""How alike two words are at least, of which one is typed for the other: `tag` is not meant for `extra`."""
MISSPELLED: Final = 0.85
"""How alike they are where many words are compared: `jupyter` is not meant for `update`."""


def nearest(word: str, known: Iterable[str], least: float = _COMES_CLOSE) -> str | None:
    """The known name closest to a word; None where nothing comes close.

    Args:
        word: What was typed.
        known: The names.
        least: How alike the two are at least, from 0 to 1.
    """
    matches = get_close_matches(word, list(known), n=1, cutoff=least)
    return matches[0] if matches else None


def nearest_first(word: str, known: Iterable[str]) -> str:
    """Names for a message, the likeliest first: `'prob', 'label'`, and how many more there are; `none` without any."""
    names = sorted(known, key=lambda name: (-SequenceMatcher(None, word, name).ratio(), name))
    shown = [f"'{name}'" for name in names[:_SHOWN]]
    more = [f"and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*shown, *more]) or "none"
