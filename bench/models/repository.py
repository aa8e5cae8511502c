"""Writes the model repository of the bench, and the answers that ONNX Runtime itself gives for its inputs."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from bench.models import graphs
from bench.paths import WORK

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Model:
    """A model of the bench: how it is built, served and asked."""

    name: str
    graph: Callable[[], onnx.ModelProto]
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


def _mlp() -> onnx.ModelProto:
    return graphs.mlp()[0]


def _image() -> onnx.ModelProto:
    return graphs.image()[0]


MODELS = {
    model.name: model
    for model in (
        Model("mlp", _mlp, (graphs.MLP_WIDTHS[0],), (1,), 64),
        Model("image", _image, graphs.IMAGE_SHAPE, (graphs.IMAGE_CLASSES,), 8),
        Model("conv", graphs.conv, graphs.CONV_SHAPE, (10,), 8),
        Model("slow", graphs.slow, (graphs.SLOW_WIDTH,), (1,), 0),
        Model("identity", graphs.identity, (graphs.IDENTITY_WIDTH,), (graphs.IDENTITY_WIDTH,), 64),
    )
}

#: One instance of one thread each, so that every figure is that of one core of model.
CONFIG = """\
name: "{name}"
backend: "onnxruntime"
max_batch_size: {max_batch_size}
input [ {{ name: "x" data_type: TYPE_FP32 dims: {input_dims} }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: {output_dims} }} ]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
parameters {{ key: "intra_op_thread_count" value: {{ string_value: "1" }} }}
parameters {{ key: "inter_op_thread_count" value: {{ string_value: "1" }} }}
"""


def input_row(model: Model) -> Array:
    """The row that is sent to a model: shape ``[1, *input_dims]``, eight-bit values normalised to [0, 1]."""
    random = np.random.default_rng(7)
    return random.integers(0, 256, model.input_shape).astype(np.float32) / np.float32(255)


def reference_answer(model: Model) -> Array:
    """What ONNX Runtime answers to `input_row`: shape ``[1, *output_dims]``."""
    return np.asarray(np.load(_written() / "reference" / f"{model.name}.npy"), dtype=np.float32)


def repository(*names: str) -> Path:
    """The repository that holds the named models, or all of them; written where it is missing."""
    root = _written()
    if not names:
        return root / "repository"
    # Small repositories of their own, for what is measured with a single model.
    chosen = root / ("only_" + "_".join(names))
    for name in names:
        link = chosen / name
        if not link.exists():
            chosen.mkdir(parents=True, exist_ok=True)
            link.symlink_to(root / "repository" / name, target_is_directory=True)
    return chosen


def _written() -> Path:
    """The folder with models and answers, complete."""
    root = _folder()
    if not (root / "complete").exists():
        for model in MODELS.values():
            _write(root, model)
        (root / "complete").touch()
    return root


def _folder() -> Path:
    """A folder for this very set of models: a change of a graph or of the configuration takes a new one."""
    sources = [CONFIG.encode(), Path(graphs.__file__).read_bytes(), Path(__file__).read_bytes()]
    return WORK / f"models-{hashlib.sha256(b''.join(sources)).hexdigest()[:12]}"


def _write(root: Path, model: Model) -> None:
    version = root / "repository" / model.name / "1"
    version.mkdir(parents=True, exist_ok=True)
    onnx.save(model.graph(), version / "model.onnx")
    (version.parent / "config.pbtxt").write_text(config_text(model))
    (root / "reference").mkdir(exist_ok=True)
    np.save(root / "reference" / f"{model.name}.npy", _run(version / "model.onnx", input_row(model)))


def config_text(model: Model) -> str:
    """The model's `config.pbtxt`."""
    # A model without batching declares its whole shape.
    whole = model.max_batch_size == 0
    text = CONFIG.format(
        name=model.name,
        max_batch_size=model.max_batch_size,
        input_dims=json.dumps(list(model.input_shape if whole else model.input_dims)),
        output_dims=json.dumps(list(model.output_shape if whole else model.output_dims)),
    )
    return text if whole else text + "dynamic_batching { }\n"


def _run(path: Path, row: Array) -> Array:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["y"], {"x": row})[0], dtype=np.float32)
