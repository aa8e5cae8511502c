"""The models that ONNX Runtime runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx

from bench.models import graphs
from bench.models.model import Array, Model, setting


@dataclass(frozen=True)
class OnnxModel(Model):
    """A model with a graph."""

    backend: ClassVar[str] = "onnxruntime"

    graph: Callable[[], onnx.ModelProto]

    def write(self, version: Path) -> None:
        """Writes the graph."""
        onnx.save(self.graph(), version / "model.onnx")

    def answer(self, version: Path) -> Array:
        """What ONNX Runtime itself answers."""
        import onnxruntime

        session = onnxruntime.InferenceSession(version / "model.onnx", providers=["CPUExecutionProvider"])
        return np.asarray(session.run(["y"], {"x": self.row()})[0], dtype=np.float32)

    def settings(self) -> Sequence[str]:
        """One thread for the one instance."""
        return [setting("intra_op_thread_count", "1"), setting("inter_op_thread_count", "1")]


@dataclass(frozen=True)
class LevelsModel(OnnxModel):
    """A model with two priority levels, whose requests have the second one unless they say otherwise."""

    def scheduler(self) -> str:
        """Batches as ever, the first level before the second."""
        return "dynamic_batching { priority_levels: 2 default_priority_level: 2 }"


def _mlp() -> onnx.ModelProto:
    return graphs.mlp()[0]


def _image() -> onnx.ModelProto:
    return graphs.image()[0]


ONNX_MODELS = (
    OnnxModel("mlp", (graphs.MLP_WIDTHS[0],), (1,), 64, _mlp),
    OnnxModel("image", graphs.IMAGE_SHAPE, (graphs.IMAGE_CLASSES,), 8, _image),
    OnnxModel("conv", graphs.CONV_SHAPE, (10,), 8, graphs.conv),
    LevelsModel("levels", graphs.CONV_SHAPE, (10,), 8, graphs.conv),
    OnnxModel("slow", (graphs.SLOW_WIDTH,), (1,), 0, graphs.slow),
)
