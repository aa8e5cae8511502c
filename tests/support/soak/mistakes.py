"""What must not have happened, each kind once: what happens once in hours may happen a thousand times a minute."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable


class Mistakes:
    """The first text of each kind, with how many there were. Texts are of a kind if only numbers in them differ."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """Tells the first of each kind at once."""
        self._say = say
        self._first: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """One more."""
        kind = re.sub(r"\d+", "#", text)
        if kind not in self._first:
            self._first[kind] = text
            self._say(f"wrong: {text}")
        self._counts[kind] += 1

    @property
    def count(self) -> int:
        """All of them."""
        return self._counts.total()

    def texts(self) -> list[str]:
        """A line for each kind."""
        return [f"{self._counts[kind]} times: {text}" for kind, text in self._first.items()]
