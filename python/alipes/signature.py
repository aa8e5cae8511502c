"""What a model file itself says about its inputs and outputs.

Both the server and the workers know it, so it needs nothing but the standard library.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final, Literal

__all__ = ["ANY", "Port", "Side", "Signature"]

ANY: Final = -1
"""A size that the file does not fix."""

Side = Literal["input", "output"]


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output of a model file.

    Attributes:
        name: Name of the tensor.
        datatype: Element type under its V2 name, for example `FP32`.
        shape: Sizes with the batch dimension, where there is one; -1 stands for any.
        symbols: What the file calls each size that it leaves open, one for each of `shape`, empty where it has no name;
            sizes with one name are equal. None at all where the file names no sizes.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    symbols: tuple[str, ...] = ()

    @property
    def has_batch_dimension(self) -> bool:
        """Whether axis 0 can be the batch."""
        return bool(self.shape) and self.shape[0] == ANY


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a model file, in the file's order."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @classmethod
    def from_json(cls, text: str) -> Signature:
        """Read what `to_json` wrote, or `alipes._core.OnnxProbe.signature`."""
        value = json.loads(text)
        inputs, outputs = (
            tuple(
                Port(port["name"], port["datatype"], tuple(port["shape"]), tuple(port.get("symbols", ())))
                for port in value[side]
            )
            for side in ("inputs", "outputs")
        )
        return cls(inputs, outputs)

    def to_json(self) -> str:
        """As a JSON text."""
        sides = {"inputs": self.inputs, "outputs": self.outputs}
        return json.dumps({side: [asdict(port) for port in ports] for side, ports in sides.items()})

    @property
    def can_batch(self) -> bool:
        """Whether axis 0 of every input and output can be the batch."""
        return all(port.has_batch_dimension for port in (*self.inputs, *self.outputs))

    def side(self, side: Side) -> tuple[Port, ...]:
        """The inputs or the outputs."""
        return self.inputs if side == "input" else self.outputs
