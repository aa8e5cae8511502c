"""The models that are Python functions: the same files for alipes and for Triton."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.models.graphs import IMAGE_SHAPE
from bench.models.model import Array, Model, setting

SOURCES = Path(__file__).parent / "python"

WIDTH = 1024
BATCH = 64
#: Responses of one request to `counts`.
RESPONSES = 100
CHAIN_WIDTH = 16


@dataclass(frozen=True)
class PythonModel(Model):
    """A model with a `model.py`."""

    backend: ClassVar[str] = "python"

    #: Its file below `python`.
    source: str
    #: From the row that is sent to the answer; None where nobody can know it before.
    function: Callable[[Array], Array] | None
    #: What is sent in every element, if not pixels.
    element: float | None = None
    decoupled: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)

    def row(self) -> Array:
        """The row that is sent."""
        return super().row() if self.element is None else np.full(self.input_shape, self.element, np.float32)

    def write(self, version: Path) -> None:
        """Copies the file."""
        shutil.copyfile(SOURCES / f"{self.source}.py", version / "model.py")

    def answer(self, version: Path) -> Array:
        """What the function says; nothing where there is none."""
        return np.empty(0, np.float32) if self.function is None else self.function(self.row())

    def settings(self) -> Sequence[str]:
        """Parameters, and whether responses are counted by the model."""
        lines = [setting(key, value) for key, value in self.parameters.items()]
        return [*lines, "model_transaction_policy { decoupled: true }"] if self.decoupled else lines


def _same(row: Array) -> Array:
    return row


def _twice(row: Array) -> Array:
    return row * np.float32(2)


def _first_index(row: Array) -> Array:
    return np.zeros_like(row)


def _plus(steps: int) -> Callable[[Array], Array]:
    return lambda row: row + np.float32(steps)


def _chain(name: str, then: str | None, steps: int) -> PythonModel:
    parameters = {} if then is None else {"next": then}
    return PythonModel(name, (CHAIN_WIDTH,), (CHAIN_WIDTH,), 0, "chain", _plus(steps), parameters=parameters)


#: Both servers have these.
SHARED_MODELS = (
    PythonModel("identity", (WIDTH,), (WIDTH,), 0, "identity", _same),
    PythonModel("identity_batched", (WIDTH,), (WIDTH,), BATCH, "identity", _same),
    PythonModel("pixels", IMAGE_SHAPE, IMAGE_SHAPE, 0, "identity", _same),
    PythonModel("pixels_twice", IMAGE_SHAPE, IMAGE_SHAPE, 0, "twice", _twice),
    PythonModel("counts", (), (), 0, "counts", _first_index, element=RESPONSES, decoupled=True),
    _chain("first", "second", 3),
    _chain("second", "third", 2),
    _chain("third", None, 1),
)

PYTHON_MODELS = (
    *SHARED_MODELS,
    PythonModel("mortal", (), (2,), 0, "mortal", None),
    PythonModel("busy", (), (), 0, "busy", _same),
)
