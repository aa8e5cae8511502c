"""The name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Final

__all__ = ["nearest", "nearest_first"]

_SHOWN: Final = 10


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name closest to a word; None where nothing comes close."""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def nearest_first(word: str, known: Iterable[str]) -> str:
    """Names for a message, the likeliest first: `'prob', 'label'`, and how many more there are; `none` without any."""
    names = sorted(known, key=lambda name: (-SequenceMatcher(None, word, name).ratio(), name))
    shown = [f"'{name}'" for name in names[:_SHOWN]]
    more = [f"and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*shown, *more]) or "none"
