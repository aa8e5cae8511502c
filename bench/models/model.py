"""What every model of the bench has: a name, shapes, a request to send, an answer to expect, a configuration."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

#: One instance, so that every figure is that of one core of model.
CONFIG = """\
name: "{name}"
backend: "{backend}"
max_batch_size: {max_batch_size}
input [ {{ name: "x" data_type: TYPE_FP32 dims: {input_dims} }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: {output_dims} }} ]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
"""


@dataclass(frozen=True)
class Model(ABC):
    """A model: how it is asked and served; input and output are called ``x`` and ``y``."""

    #: What runs it, as `config.pbtxt` names it.
    backend: ClassVar[str]

    name: str
    #: Shapes of one row, without the batch dimension.
    input_dims: tuple[int, ...]
    output_dims: tuple[int, ...]
    #: 0: the model has no batch dimension of its own; it is sent ``[1, *input_dims]`` all the same.
    max_batch_size: int

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of a request of one row."""
        return (1, *self.input_dims)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the answer to one row."""
        return (1, *self.output_dims)

    def row(self) -> Array:
        """The row that is sent: shape ``[1, *input_dims]``, eight-bit values normalised to [0, 1]."""
        random = np.random.default_rng(7)
        return random.integers(0, 256, self.input_shape).astype(np.float32) / np.float32(255)

    @abstractmethod
    def write(self, version: Path) -> None:
        """Writes the model into the folder of its version."""

    @abstractmethod
    def answer(self, version: Path) -> Array:
        """The right answer to `row`, shape ``[1, *output_dims]``, found without any server."""

    def settings(self) -> Sequence[str]:
        """Further lines of the configuration."""
        return ()

    def scheduler(self) -> str:
        """The line of the configuration that chooses the scheduler, empty for none."""
        return "" if self.max_batch_size == 0 else "dynamic_batching { }"

    def config_text(self, backend: str | None = None) -> str:
        """The model's `config.pbtxt`, for its own backend or for a stand-in that ``backend`` runs."""
        # A model without batching declares its whole shape.
        whole = self.max_batch_size == 0
        text = CONFIG.format(
            name=self.name,
            backend=backend or self.backend,
            max_batch_size=self.max_batch_size,
            input_dims=json.dumps(list(self.input_shape if whole else self.input_dims)),
            output_dims=json.dumps(list(self.output_shape if whole else self.output_dims)),
        )
        lines = [*([] if backend else self.settings()), self.scheduler()]
        return text + "".join(f"{line}\n" for line in lines if line)


def setting(key: str, value: str) -> str:
    """A line of the configuration with one of the model's parameters."""
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}'
