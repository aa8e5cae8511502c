"""The one table of platforms, backends and model files, and what people call such files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

__all__ = ["PLATFORMS", "SERVED_FILES", "USUAL_FILES", "Platform"]


@dataclass(frozen=True, slots=True)
class Platform:
    """One row: a kind of model.

    `platform` is empty where Triton has no platform name for it, `filename` where there is no model file: the rows
    after that of Python are kinds of ours, which Triton does not have.
    """

    backend: str
    platform: str
    filename: str
    served: bool = True


PLATFORMS: Final[tuple[Platform, ...]] = (
    Platform("tensorflow", "tensorflow_savedmodel", "model.savedmodel"),
    Platform("tensorflow", "tensorflow_graphdef", "model.graphdef", served=False),
    Platform("tensorrt", "tensorrt_plan", "model.plan", served=False),
    Platform("onnxruntime", "onnxruntime_onnx", "model.onnx"),
    Platform("openvino", "", "model.xml"),
    Platform("pytorch", "pytorch_libtorch", "model.pt"),
    Platform("pytorch", "torch_aoti", "model.pt2"),
    Platform("python", "", "model.py"),
    Platform("xgboost", "", "model.ubj"),
    Platform("xgboost", "", "model.json"),
    Platform("lightgbm", "", "model.txt"),
    Platform("catboost", "", "model.cbm"),
    Platform("sklearn", "", "model.skops"),
    Platform("sklearn", "", "model.joblib"),
    Platform("sklearn", "", "model.pkl"),
    Platform("snapshotter", "snapshotter", ""),
    Platform("averager", "averager", ""),
    Platform("tensorflow", "keras", "model.keras"),
    Platform("tensorflow", "tensorflow_savedmodel", "saved_model.pb"),
    Platform("mlflow", "", "model.mlflow"),
    Platform("mlflow", "", "MLmodel"),
    Platform("tokenizer", "", "tokenizer.json"),
)
"""In the order in which files are looked for."""

SERVED_FILES: Final = frozenset(row.filename for row in PLATFORMS if row.served and row.filename)
"""What model files are called that are served as they are."""

_TELLING: Final = frozenset((".onnx", ".py", ".pt", ".pt2", ".xml", ".keras", ".savedmodel", ".ubj", ".cbm", ".skops"))
"""Ends of names that tell the kind of a model; `.txt`, `.json` or `.pb` are those of many other files, too."""


def _usual_files() -> Mapping[str, Platform]:
    rows = {PurePosixPath(row.filename).suffix: row for row in reversed(PLATFORMS) if row.served}
    telling = {suffix: row for suffix, row in rows.items() if suffix in _TELLING}
    return MappingProxyType({**telling, ".pth": telling[".pt"]})


USUAL_FILES: Final = _usual_files()
"""The kind of a model whose file has another name than the usual one, by how that name ends."""
