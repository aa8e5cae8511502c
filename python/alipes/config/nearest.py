"""The name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["nearest"]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name closest to a word; None where nothing comes close."""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None
