"""Climbing: from the best point to better ones near by, with steps that become smaller, from several beginnings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from alipes.tune.goal import FAILED, Rank
from alipes.tune.point import Point
from alipes.tune.space import Space

__all__ = ["Quick"]

Place: TypeAlias = tuple[int, ...]

_CANDIDATES: Final = 256
"""Places among which the farthest from all known ones is looked for."""


class Quick:
    """Finds good points with few trials.

    A climb looks at both neighbours on each axis, goes to the best of them, and halves the steps where none is better.
    At steps of one it looks along pairs of axes too, since batch and load often pay only together. Where a climb ends,
    the next one begins far from everything that is known.
    """

    def __init__(self, space: Space, begin: Point | None = None, seed: int = 0) -> None:
        """Begins at a point, such as the present configuration, and in the middle of the space.

        Args:
            space: Where to search.
            begin: Where to begin.
            seed: For the choice among equal places.
        """
        self._space = space
        self._random = np.random.default_rng(seed)
        self._known: dict[Place, Rank] = {}
        self._places = self._walk(space.places(begin) if begin is not None else None)

    def propose(self) -> Point | None:
        """The next place of the walk."""
        place = next(self._places, None)
        return None if place is None else self._space.at(place)

    def learn(self, point: Point, rank: Rank) -> None:
        """Takes how good a point was."""
        self._known[self._space.places(point)] = rank

    def _walk(self, begin: Place | None) -> Iterator[Place]:
        middle = tuple(size // 2 for size in self._space.shape)
        for place in (begin, middle):
            if place is not None:
                yield from self._try(place)
        while True:
            yield from self._climb(self._best())
            if len(self._known) >= self._space.size:
                return
            yield from self._try(self._farthest())

    def _try(self, place: Place) -> Iterator[Place]:
        if place not in self._known:
            self._known[place] = FAILED
            yield place

    def _best(self) -> Place:
        return max(self._known, key=lambda place: self._known[place])

    def _climb(self, place: Place) -> Iterator[Place]:
        steps = [max(1, size // 3) for size in self._space.shape]
        while True:
            for neighbour in self._around(place, steps):
                yield from self._try(neighbour)
            better = self._best()
            if self._known[better] > self._known[place]:
                place = better
            elif max(steps) > 1:
                steps = [max(1, step // 2) for step in steps]
            else:
                for neighbour in self._diagonals(place):
                    yield from self._try(neighbour)
                    if self._known[neighbour] > self._known[place]:
                        break
                if self._best() == place:
                    return
                place = self._best()

    def _around(self, place: Place, steps: Sequence[int]) -> Iterator[Place]:
        for axis, step in enumerate(steps):
            for change in (step, -step):
                neighbour = self._moved(place, {axis: change})
                if neighbour != place:
                    yield neighbour

    def _diagonals(self, place: Place) -> Iterator[Place]:
        axes = [axis for axis, size in enumerate(self._space.shape) if size > 1]
        for first, second in itertools.combinations(axes, 2):
            for one, other in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                neighbour = self._moved(place, {first: one, second: other})
                if neighbour != place:
                    yield neighbour

    def _moved(self, place: Place, changes: dict[int, int]) -> Place:
        moved = list(place)
        for axis, change in changes.items():
            moved[axis] = min(max(moved[axis] + change, 0), self._space.shape[axis] - 1)
        return tuple(moved)

    def _farthest(self) -> Place:
        """Of some unknown places that which is farthest from the nearest known one; distances in shares of the axes."""
        scale = np.maximum(np.array(self._space.shape) - 1, 1)
        known = np.array(list(self._known)) / scale
        drawn = self._random.integers(0, self._space.shape, (_CANDIDATES, len(scale)))
        fresh = [place for place in map(tuple, drawn.tolist()) if place not in self._known]
        if not fresh:
            every = itertools.product(*map(range, self._space.shape))
            return next(place for place in every if place not in self._known)
        distances = [np.abs(known - np.array(place) / scale).sum(1).min() for place in fresh]
        return fresh[int(np.argmax(distances))]
