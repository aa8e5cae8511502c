"""What people type because other programs call it so, and what stands for it here: one table, by meaning.

Hints look here before they compare spellings: `build` is spelled like nothing, and `start` like `stats`.
"""

from __future__ import annotations

from alipes.synonyms.find import synonym, words_at
from alipes.synonyms.synonym import Place, Synonym
from alipes.synonyms.table import SYNONYMS

__all__ = ["SYNONYMS", "Place", "Synonym", "synonym", "words_at"]
