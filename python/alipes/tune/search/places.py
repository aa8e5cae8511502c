"""The places of a space: which are unknown, how far they are from each other."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from alipes.tune.knobs import CALLERS, CONFIG, RATE
from alipes.tune.search.surface import Array
from alipes.tune.space import Axis, Space

__all__ = ["Place", "Places"]

Place: TypeAlias = tuple[int, ...]
"""Where the values of a point stand on the axes."""

_CANDIDATES: Final = 2048
"""Of a larger space so many places drawn at random are looked at, and those near some good ones."""
_SHARERS: Final = (("instances",), ("instances", "max_batch_size"))
"""What shares a load. Latencies bend where each has no more than it can do at once, so the load of each is a coordinate
of its own: without these, searches of recorded sweeps miss the best under tight limits 1.3 times as often."""


class Places:
    """The places of a space, as vectors: each axis goes from 0 to 1, behind them the load of each sharer."""

    def __init__(self, space: Space, seed: int) -> None:
        """Draws nothing yet.

        Args:
            space: The space.
            seed: For what is drawn.
        """
        self._shape = space.shape
        self._size = space.size
        self._random = np.random.default_rng(seed)
        self._coordinates = [_coordinates(axis) for axis in space.axes]
        self._ordered = [axis.knob != CONFIG for axis in space.axes]
        self._loads = [load for sharers in _SHARERS for load in _loads(space.axes, sharers)]

    @property
    def width(self) -> int:
        """How many coordinates a vector has."""
        return int(sum(table.shape[1] for table in self._coordinates)) + len(self._loads)

    @property
    def middle(self) -> Place:
        """The place in the middle of all axes."""
        return tuple(size // 2 for size in self._shape)

    def vectors(self, places: Sequence[Place]) -> Array:
        """The coordinates of places, `[places, width]`."""
        indices = np.array(places, int).reshape(len(places), len(self._coordinates))
        axes = [table[indices[:, at]] for at, table in enumerate(self._coordinates)]
        loads = [sum(table[indices[:, at]] for at, table in load.items()) for load in self._loads]
        return np.column_stack([*axes, *loads])

    def unknown(self, known: Collection[Place], good: Sequence[Place]) -> list[Place]:
        """Places that are not known: all of a small space; of a larger one some, and those near good ones."""
        if self._size <= _CANDIDATES:
            return [place for place in self._every() if place not in known]
        rows = self._random.integers(0, self._shape, (_CANDIDATES, len(self._shape))).tolist()
        drawn = {tuple(row) for row in rows} | {near for place in good for near in self._around(place)}
        fresh = sorted(place for place in drawn if place not in known)
        return fresh or [next(place for place in self._every() if place not in known)]

    def farthest(self, candidates: Sequence[Place], known: Sequence[Place]) -> Place:
        """The candidate that is farthest from the nearest known place."""
        elsewhere, there = self.vectors(candidates), self.vectors(known)
        distances = np.abs(elsewhere[:, None] - there[None]).sum(2).min(1)
        equal = np.flatnonzero(distances >= distances.max() - 1e-9)
        return candidates[int(self._random.choice(equal))]

    def are_neighbours(self, one: Place, other: Place) -> bool:
        """Whether places differ on one axis alone, by one step where its values have an order."""
        steps = [(abs(a - b), ordered) for a, b, ordered in zip(one, other, self._ordered, strict=True) if a != b]
        return len(steps) == 1 and (steps[0][0] == 1 or not steps[0][1])

    def _every(self) -> Iterator[Place]:
        return itertools.product(*map(range, self._shape))

    def _around(self, place: Place) -> Iterator[Place]:
        """Places that differ by one or two steps on an axis, or by one step on two."""
        axes = range(len(place))
        changes: list[dict[int, int]] = [{axis: step} for axis in axes for step in (-2, -1, 1, 2)]
        changes += [{a: x, b: y} for a, b in itertools.combinations(axes, 2) for x in (-1, 1) for y in (-1, 1)]
        for change in changes:
            moved = tuple(at + change.get(axis, 0) for axis, at in enumerate(place))
            if all(0 <= at < size for at, size in zip(moved, self._shape, strict=True)):
                yield moved


def _coordinates(axis: Axis) -> Array:
    """One row for each value. Parts of a configuration have no order: each is as far from every other."""
    count = len(axis.values)
    if axis.knob == CONFIG:
        return np.eye(count) / 2**0.5
    return (np.arange(count) / max(count - 1, 1)).reshape(-1, 1)


def _loads(axes: Sequence[Axis], sharers: Sequence[str]) -> Iterator[dict[int, Array]]:
    """Summands by axis, one for each value: the logarithms of a load, and negative ones of what shares it."""
    for at, load in enumerate(axes):
        shared = [by for by, axis in enumerate(axes) if axis.knob in sharers and axis.model == load.model]
        if load.knob in (CALLERS, RATE) and len(shared) == len(sharers):
            logarithms = {by: np.log(np.array(axes[by].values, float)) for by in (at, *shared)}
            widest = max(float(np.ptp(row)) for row in logarithms.values()) or 1.0
            yield {by: (row if by == at else -row) / widest for by, row in logarithms.items()}
