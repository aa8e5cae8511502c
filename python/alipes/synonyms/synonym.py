"""`Synonym`: words that mean one thing, and what to type for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Place", "Synonym"]

Place: TypeAlias = Literal[
    "alipes",
    "alipes deploy",
    "alipes models",
    "alipes repo",
    "alipes serve",
    "alipes loadtest",
    "clients",
    "alipes.serve",
    "@alipes.model",
]
"""Where something was typed: behind a command; `clients` are all commands with `--url`; the last two are keywords."""


@dataclass(frozen=True, slots=True)
class Synonym:
    """Words that mean one thing.

    Attributes:
        words: What is typed, without dashes in front, separated by spaces; `_` and `-` are the same.
        meant: What to type in its place, asked as "did you mean ...?".
        says: A sentence, where no single word does.
    """

    words: str
    meant: str = ""
    says: str = ""

    @property
    def hint(self) -> str:
        """What a person reads."""
        return f"did you mean {self.meant}?" if self.meant else self.says
