"""What a tuner may choose from: values for each knob of each model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from alipes.errors import ConfigError
from alipes.tune.knobs import CONFIG, Value, find_knob
from alipes.tune.point import Point

__all__ = ["Axis", "Space"]

_MAX_POINTS: Final = 1_000_000
"""A space with more is a mistake: even a thousandth of it takes days."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of one knob of one model.

    Attributes:
        model: Its name.
        knob: The knob's name.
        values: Different ones, in ascending order.
    """

    model: str
    knob: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            ConfigError: If there is no such knob, or it cannot have such values.
        """
        least = find_knob(self.knob).least
        wrong = [value for value in self.values if not _is_fit(self.knob, value, least)]
        if wrong or not self.values:
            got = f"{wrong[0]}" if wrong else "nothing"
            raise ConfigError(f"knob '{self.knob}' takes whole numbers from {least} on, not {got}", key=self.knob)
        object.__setattr__(self, "values", tuple(sorted(set(self.values), key=_order)))


@dataclass(frozen=True, slots=True)
class Space:
    """All points that can be made of the values of some axes.

    Attributes:
        axes: One for each knob of each model.
    """

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        """Checks its size.

        Raises:
            ConfigError: If a knob is there twice, or there are too many points.
        """
        names = [(axis.model, axis.knob) for axis in self.axes]
        if len(set(names)) < len(names):
            raise ConfigError("a knob of a model has values twice", key="space")
        if self.size > _MAX_POINTS:
            raise ConfigError(
                f"the space has {self.size:,} points, the limit is {_MAX_POINTS:,}",
                key="space",
                hint="leave out values",
            )

    @classmethod
    def of(cls, values: Mapping[str, Mapping[str, Sequence[Value]]]) -> Self:
        """From values by model and knob."""
        return cls(tuple(Axis(model, knob, tuple(row)) for model, rows in values.items() for knob, row in rows.items()))

    @property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(axis.values) for axis in self.axes)

    def points(self) -> Iterator[Point]:
        """All points; the last axis changes first."""
        return map(self.at, itertools.product(*map(range, self.shape)))

    def at(self, places: Sequence[int]) -> Point:
        """The point with the values at these places of the axes."""
        chosen = zip(self.axes, places, strict=True)
        return Point(tuple((axis.model, axis.knob, axis.values[place]) for axis, place in chosen))

    def places(self, point: Point) -> tuple[int, ...]:
        """Where the values of a point stand on the axes; the nearest value where it is none of them."""
        found = {(model, knob): value for model, knob, value in point.values}
        return tuple(_nearest(axis.values, found.get((axis.model, axis.knob), axis.values[0])) for axis in self.axes)

    def document(self) -> dict[str, dict[str, list[Value]]]:
        """Values by model and knob, for JSON."""
        rows: dict[str, dict[str, list[Value]]] = {}
        for axis in self.axes:
            rows.setdefault(axis.model, {})[axis.knob] = list(axis.values)
        return rows


def _is_fit(knob: str, value: Value, least: int) -> bool:
    if knob == CONFIG or isinstance(value, str):
        return knob == CONFIG and isinstance(value, str)
    return min(_numbers(value), default=-1) >= least


def _numbers(value: Value) -> tuple[int, ...]:
    if isinstance(value, str):
        return ()
    return value if isinstance(value, tuple) else (value,)


def _order(value: Value) -> tuple[tuple[int, ...], str]:
    return _numbers(value), str(value)


def _nearest(values: Sequence[Value], wanted: Value) -> int:
    if wanted in values:
        return values.index(wanted)

    def distance(place: int) -> float:
        mine, other = _numbers(values[place]), _numbers(wanted)
        return sum(abs(a - b) for a, b in itertools.zip_longest(mine, other, fillvalue=0))

    return min(range(len(values)), key=distance)
