"""The one table of platforms, backends and model files; `file_kinds` tells files that have other names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["PLATFORMS", "SERVED_FILES", "Platform"]


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
