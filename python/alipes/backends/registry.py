"""Which backends can be named in a model's configuration: our own, and those that other packages bring."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from alipes import _core
from alipes.backends.attached.backend import AttachedBackend
from alipes.backends.base import Backend
from alipes.backends.catboost.backend import CatboostBackend
from alipes.backends.fil.backend import FilBackend
from alipes.backends.lightgbm.backend import LightgbmBackend
from alipes.backends.mlflow.backend import MlflowBackend
from alipes.backends.onnxruntime.backend import OnnxruntimeBackend
from alipes.backends.openvino.backend import OpenvinoBackend
from alipes.backends.python.backend import PythonBackend
from alipes.backends.pytorch.backend import PytorchBackend
from alipes.backends.sklearn.backend import SklearnBackend
from alipes.backends.steps.classes import SoftmaxBackend, TopKBackend
from alipes.backends.steps.picture import PictureBackend
from alipes.backends.steps.pooling import MeanPoolingBackend
from alipes.backends.steps.text import DetokenizerBackend, TokenizerBackend
from alipes.backends.streaming.averager import AveragerBackend
from alipes.backends.streaming.snapshotter import SnapshotterBackend
from alipes.backends.tensorflow.backend import TensorflowBackend
from alipes.backends.xgboost.backend import XgboostBackend
from alipes.errors import ModelLoadError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Backend name -> prepares its models.
OFFERED: Mapping[str, type[Backend]] = MappingProxyType(
    {
        "attached": AttachedBackend,
        "averager": AveragerBackend,
        "catboost": CatboostBackend,
        "detokenizer": DetokenizerBackend,
        "fil": FilBackend,
        "lightgbm": LightgbmBackend,
        "mean_pooling": MeanPoolingBackend,
        "mlflow": MlflowBackend,
        "onnxruntime": OnnxruntimeBackend,
        "openvino": OpenvinoBackend,
        "picture": PictureBackend,
        "python": PythonBackend,
        "pytorch": PytorchBackend,
        "sklearn": SklearnBackend,
        "snapshotter": SnapshotterBackend,
        "softmax": SoftmaxBackend,
        "tensorflow": TensorflowBackend,
        "tokenizer": TokenizerBackend,
        "top_k": TopKBackend,
        "xgboost": XgboostBackend,
    }
)

# Names that Triton users know and that this release cannot run: they are no misspelt names.
NOT_OFFERED = frozenset(("dali", "tensorrt", "tensorrtllm", "vllm"))

NOT_OFFERED_WORDS: Final = "is not offered by this release"
"""What the failure of such a model says of its backend."""

GROUP: Final = "alipes.backends"
"""Group of entry points by which other packages bring backends: the backend's name, and its class."""


def backend_of(name: str) -> type[Backend]:
    """The backend that a configuration names: one of ours, else one of another package.

    Raises:
        ModelLoadError: If this release does not offer it, it is unknown, or its package is broken; the text says which.
    """
    found = OFFERED.get(name)
    if found is not None:
        return found
    if points := entry_points().get(name):
        return _load(name, points)
    if name in NOT_OFFERED:
        offered = ", ".join(sorted(OFFERED))
        why = _why_no_plan() if name == "tensorrt" else ""
        raise ModelLoadError(
            f"backend '{name}' {NOT_OFFERED_WORDS}{why}; offered: {offered}", backend=name, code="UNSUPPORTED"
        )
    raise ModelLoadError(
        f"unable to find backend library for backend '{name}', try specifying runtime on the model configuration.",
        backend=name,
        code="INVALID_ARG",
    )


def _why_no_plan() -> str:
    """What keeps a TensorRT plan from running here, and what to serve instead."""
    has_gpu = bool(_core.gpus())
    how = " with the accelerator 'tensorrt', which builds the same plan as the model loads" if has_gpu else ""
    lacks = "" if has_gpu else ", and this machine has none"
    return (
        f": a plan runs on the NVIDIA GPU that it was built for{lacks}; serve the ONNX file that it was built from{how}"
    )


@cache
def entry_points() -> Mapping[str, tuple[EntryPoint, ...]]:
    """The backends of other packages by name.

    Read when a name is first asked for that is not ours, and once: the metadata of every package takes 30 ms to read.
    """
    from importlib import metadata  # here, since it takes 30 ms and more to import

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in metadata.entry_points(group=GROUP):
        found[point.name] = (*found.get(point.name, ()), point)
    return found


def _load(name: str, points: tuple[EntryPoint, ...]) -> type[Backend]:
    """The class behind an entry point.

    Raises:
        ModelLoadError: If several packages offer the name, the class cannot be imported, or it is none.
    """
    packages = sorted({_package(point) for point in points})
    if len(packages) > 1:
        raise ModelLoadError(
            f"backend '{name}' is offered by several packages: {', '.join(packages)}; uninstall all but one",
            backend=name,
        )
    point, place = points[0], f"'{points[0].value}' of package '{packages[0]}'"
    try:
        found = point.load()
    except (Exception, SystemExit) as error:
        raise ModelLoadError(
            f"backend '{name}' cannot be imported: {place} raised {type(error).__name__}: {error}; "
            "install what it lacks, or update or uninstall the package",
            backend=name,
        ).hiding({f": {error};": ";"}) from error
    if not (isinstance(found, type) and issubclass(found, Backend)):
        raise ModelLoadError(
            f"backend '{name}' cannot be used: {place} is no subclass of alipes.backends.base.Backend; "
            "update or uninstall the package",
            backend=name,
        )
    return found


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "unknown"
