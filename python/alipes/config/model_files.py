"""The one table of platforms, backends and model files; `file_kinds` tells files that have other names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["PLATFORMS", "SERVED_FILES", "Platform"]


@dataclass(frozen=True, slots=True)
class Platform:
    """One row: a kind of model.

    `platform` is empty where Triton has no platform name for it, `filename` where there is no model file: the rows
    after that of Python are kinds of ours, which Triton does not have. `export` is what `alipes.Platform` calls a kind
    that models can be exported as. A kind with `beside` is served only along with that file, by a named backend.
    """

    backend: str
    platform: str
    filename: str
    served: bool = True
    export: str = ""
    beside: str = ""


PLATFORMS: Final[tuple[Platform, ...]] = (
    Platform("tensorflow", "tensorflow_savedmodel", "model.savedmodel", export="SAVEDMODEL"),
    Platform("tensorflow", "tensorflow_graphdef", "model.graphdef", served=False),
    Platform("tensorrt", "tensorrt_plan", "model.plan", served=False, export="TENSORRT"),
    Platform("onnxruntime", "onnxruntime_onnx", "model.onnx", export="ONNX"),
    Platform("openvino", "", "model.xml"),
    Platform("pytorch", "pytorch_libtorch", "model.pt", export="TORCHSCRIPT"),
    Platform("pytorch", "torch_aoti", "model.pt2", export="TORCHEXPORT"),
    Platform("python", "", "model.py", export="PYTHON"),
    Platform("pytorch", "", "model.safetensors", export="TORCHMODULE", beside="model.py"),
    Platform("xgboost", "", "model.ubj"),
    Platform("xgboost", "", "model.json"),
    Platform("lightgbm", "", "model.txt"),
    Platform("catboost", "", "model.cbm"),
    # Before the files in a folder of MLflow that run code, and whose names say nothing of its columns.
    Platform("mlflow", "", "MLmodel"),
    Platform("sklearn", "", "model.skops"),
    Platform("sklearn", "", "model.joblib"),
    Platform("sklearn", "", "model.pkl"),
    Platform("snapshotter", "snapshotter", "", export="SNAPSHOTTER"),
    Platform("averager", "averager", "", export="AVERAGER"),
    Platform("tensorflow", "keras", "model.keras"),
    Platform("tensorflow", "tensorflow_savedmodel", "saved_model.pb"),
    Platform("mlflow", "", "model.mlflow"),
    Platform("tokenizer", "", "tokenizer.json"),
)
"""In the order in which files are looked for."""

SERVED_FILES: Final = frozenset(row.filename for row in PLATFORMS if row.served and row.filename and not row.beside)
"""What model files are called that are served as they are."""
