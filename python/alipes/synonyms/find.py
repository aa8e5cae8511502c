"""Looks words up in the table of synonyms."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from alipes.synonyms.synonym import Place, Synonym
from alipes.synonyms.table import SYNONYMS

__all__ = ["synonym", "words_at"]


def synonym(place: Place, word: str) -> Synonym | None:
    """The row of a word; None where the table does not have it.

    Args:
        place: Where it was typed.
        word: The word, without dashes in front.
    """
    return _at(place).get(_plain(word))


def words_at(place: Place) -> Iterable[str]:
    """Every word that the table has for a place, for those who compare spellings."""
    return _at(place).keys()


@cache
def _at(place: Place) -> dict[str, Synonym]:
    return {_plain(word): one for one in SYNONYMS[place] for word in one.words.split()}


def _plain(word: str) -> str:
    """One letter keeps its case: `-H` is a header, `-h` asks for help."""
    return word if len(word) == 1 else word.lower().replace("_", "-")
