"""How a tuner and the way it searches speak: the next point, and how good it was."""

from __future__ import annotations

from typing import Protocol

from alipes.tune.goal import Rank
from alipes.tune.point import Point

__all__ = ["Search"]


class Search(Protocol):
    """A way through a space. What it proposes may come back without a trial: known already, or impossible."""

    def propose(self) -> Point | None:
        """The point to try next; `None` where there is nothing left to try."""

    def learn(self, point: Point, rank: Rank) -> None:
        """Takes how good a point was: one that was proposed, or one that was tried once more, by all its trials."""
