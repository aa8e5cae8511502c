"""A point of a space: one value for each knob of each model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from alipes.tune.knobs import KNOBS, Value

__all__ = ["Point"]


@dataclass(frozen=True)
class Point:
    """One value for each knob of each model; equal points are one.

    Attributes:
        values: Model, knob and value, in the order of the space.
    """

    values: tuple[tuple[str, str, Value], ...]

    @classmethod
    def of(cls, values: Mapping[str, Mapping[str, Value]]) -> Self:
        """From values by model and knob."""
        return cls(tuple((model, knob, value) for model, row in values.items() for knob, value in row.items()))

    @classmethod
    def from_document(cls, document: Mapping[str, Mapping[str, Any]]) -> Self:
        """Reads what `to_document` gave, after JSON."""
        return cls.of(
            {
                model: {knob: tuple(value) if isinstance(value, list) else value for knob, value in row.items()}
                for model, row in document.items()
            }
        )

    def to_document(self) -> dict[str, dict[str, Value]]:
        """Values by model and knob, for JSON."""
        rows: dict[str, dict[str, Value]] = {}
        for model, knob, value in self.values:
            rows.setdefault(model, {})[knob] = value
        return rows

    @cached_property
    def key(self) -> str:
        """Text that equal points share, whatever the order of their values."""
        return json.dumps(self.to_document(), sort_keys=True, separators=(",", ":"))

    def of_model(self, model: str) -> dict[str, Value]:
        """The values of one model by knob."""
        return {knob: value for name, knob, value in self.values if name == model}

    def number(self, model: str, knob: str) -> int | None:
        """A number of the point; `None` where the space leaves it alone."""
        value = self.of_model(model).get(knob)
        return value if isinstance(value, int) else None

    @cached_property
    def variant(self) -> Self:
        """The part that is configuration: points with the same one need no other server."""
        return type(self)(tuple(row for row in self.values if KNOBS[row[1]].write is not None))

    def differences(self, other: Point) -> list[tuple[str, str, Value, Value | None]]:
        """Where this point differs: model, knob, its value, and the other's."""
        return [
            (model, knob, value, other.of_model(model).get(knob))
            for model, knob, value in self.values
            if other.of_model(model).get(knob) != value
        ]

    def __str__(self) -> str:
        """For people: `instances 2, callers 16`; with the model in front where there are several."""
        rows = self.to_document()
        words = {
            model: ", ".join(f"{knob} {_text(value)}" for knob, value in row.items()) for model, row in rows.items()
        }
        return "; ".join(f"{model}: {text}" if len(rows) > 1 else text for model, text in words.items()) or "as it is"


def _text(value: Value) -> str:
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


def texts(values: Iterable[Value]) -> str:
    """Values for people."""
    return ", ".join(map(_text, values))
