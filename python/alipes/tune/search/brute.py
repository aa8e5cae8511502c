"""Every point of the space, one after the other."""

from __future__ import annotations

from alipes.tune.goal import Rank
from alipes.tune.point import Point
from alipes.tune.space import Space

__all__ = ["Brute"]


class Brute:
    """Tries every point, those of one configuration next to each other."""

    def __init__(self, space: Space) -> None:
        """Begins at the first."""
        self._points = space.points()

    def propose(self) -> Point | None:
        """The next one."""
        return next(self._points, None)

    def learn(self, point: Point, rank: Rank) -> None:
        """Nothing: the order is fixed."""
