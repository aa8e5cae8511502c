"""A recorded sweep: each point of a space measured several times."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from alipes.tune import Point, Space
from alipes.tune.knobs import Value

__all__ = ["FIGURES", "FOLDER", "Sweep"]

FOLDER: Final = Path(__file__).parents[2] / "unit" / "tune" / "sweeps"
FIGURES: Final = ("rate", "mean_ms", "p50_ms", "p90_ms", "p99_ms")
"""What of each measurement is kept."""

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Sweep:
    """A recorded sweep.

    Attributes:
        name: Of the model.
        about: What it does.
        machine: Where it ran, and how loaded that was.
        measured: How each point was measured.
        values: Values by knob.
        rounds: By point, the figures of each of its measurements; points that cannot be are missing.
    """

    name: str
    about: str
    machine: str
    measured: str
    values: Mapping[str, Sequence[Value]]
    rounds: Mapping[Point, Sequence[Figures]]

    @property
    def space(self) -> Space:
        """All points."""
        return Space.of({self.name: self.values})

    def write(self, folder: Path) -> Path:
        """Writes `<name>.json`: one line for each point."""
        rows = [
            json.dumps(
                [
                    list(self.space.places(point)),
                    [[float(f"{one[figure]:.4g}") for figure in FIGURES] for one in figures],
                ]
            )
            for point, figures in self.rounds.items()
        ]
        head = {
            "name": self.name,
            "about": self.about,
            "machine": self.machine,
            "measured": self.measured,
            "values": self.values,
            "figures": FIGURES,
        }
        fields = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
        text = ",\n".join([*fields, '"points": [\n' + ",\n".join(rows) + "\n]"])
        path = folder / f"{self.name}.json"
        path.write_text("{\n" + text + "\n}\n", encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads what `write` wrote."""
        document = json.loads(path.read_text(encoding="utf-8"))
        values = document["values"]
        space = Space.of({document["name"]: values})
        rounds = {
            space.at(places): [dict(zip(document["figures"], one, strict=True)) for one in figures]
            for places, figures in document["points"]
        }
        return cls(document["name"], document["about"], document["machine"], document["measured"], values, rounds)
