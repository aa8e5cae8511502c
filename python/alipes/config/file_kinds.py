"""The one table of what a file or folder is, by its name and its first bytes, and what makes a model of it.

All advice about files is made from these rows: that of a server whose model does not load, of `alipes serve` with the
path of a file, and of `alipes repo`. The names under which files are served as they are lie in `model_files`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ALL_KINDS", "FileKind", "folder_kind", "kind_at", "kind_of_bytes", "kind_of_name"]

_EXPORT: Final = "alipes help export"
_PYTORCH: Final = "alipes help pytorch"
_SKLEARN: Final = "alipes help sklearn"
_TENSORFLOW: Final = "alipes help tensorflow"
_GPUS: Final = "alipes help gpus"

_HEAD_BYTES: Final = 4096
"""First bytes that are looked at: enough for the first keys of a document."""

_PICKLE: Final = f"start the server with --allow-pickles=MODEL if you trust its author ({_SKLEARN})"
_FACTORY: Final = f'put a model.py with make() beside it, with backend: "pytorch" in config.pbtxt ({_PYTORCH})'


@dataclass(frozen=True, slots=True)
class FileKind:
    """One row: what a file or folder is.

    Attributes:
        what: What it is, in a sentence.
        name: What such names look like, in small letters; empty where only the bytes tell.
        begins: What the first bytes look like; empty where only the name tells.
        filename: What it is called in the folder of a version; empty where it is not served as it is.
        backend: What serves it.
        further: What else it needs to be served.
        mend: What to do with one that is not served as it is; `{path}` is the file, `{folder}` that of its version.
    """

    what: str
    name: str = ""
    begins: bytes = b""
    filename: str = ""
    backend: str = ""
    further: str = ""
    mend: str = ""

    @property
    def is_served(self) -> bool:
        """Whether it is served as it is, under the right name."""
        return bool(self.filename)

    def instead(self, path: str, folder: str) -> str:
        """What to do with a file that is not served as it is."""
        return f"{self.mend.format(path=path, folder=folder)}: it is {self.what}"

    def and_then(self) -> str:
        """What a file that is served needs beside its name, as the end of a sentence."""
        return f", and {self.further}" if self.further else ""


_SPOILED: Final = (
    FileKind(
        "a pointer of Git LFS, not the model",
        begins=rb"version https://git-lfs\.github\.com/",
        mend="fetch {path} with: git lfs pull",
    ),
    FileKind(
        "a web page, not the model",
        begins=rb"\s*(<!--.{,200}?-->\s*)?<(!doctype\s+html|html)\b",
        mend="download {path} again, from the address of the file itself",
    ),
)
"""What files of every name may turn out to be."""

_XGBOOST_OLD: Final = FileKind(
    "a model of XGBoost in its old binary format",
    begins=rb"binf",
    mend="open {path} with the XGBoost that wrote it (before 3.1), and save it as {folder}/model.ubj",
)

_BY_BYTES: Final = (
    *_SPOILED,
    _XGBOOST_OLD,
    FileKind(
        "a model of XGBoost",
        begins=rb"\{L\0{7}.(learner|version)|\{\[?#?L\0{7}.(learner|version)",
        filename="model.ubj",
        backend="xgboost",
    ),
    FileKind(
        "LightGBM's description of a model, which it does not read itself",
        begins=rb'\s*\{\s*"name"\s*:\s*"tree"',
        mend="save the model of {path} with Booster.save_model('model.txt'), as {folder}/model.txt",
    ),
    FileKind(
        "a model of CatBoost as JSON",
        begins=rb'\s*\{.{,3900}?"(oblivious_trees|features_info|ctr_data|model_info)"\s*:',
        mend="save the model of {path} with save_model('model.cbm'), as {folder}/model.cbm",
    ),
    FileKind(
        "a model of XGBoost", begins=rb'\s*\{\s*"(learner|version)"\s*:', filename="model.json", backend="xgboost"
    ),
    FileKind("a model of LightGBM", begins=rb"tree\r?\n", filename="model.txt", backend="lightgbm"),
    FileKind("a model of CatBoost", begins=rb"CBM1", filename="model.cbm", backend="catboost"),
)
"""Kinds that their first bytes tell for certain, whatever the file is called."""

_BY_NAME: Final = (
    FileKind("an ONNX model", r".+\.onnx", filename="model.onnx", backend="onnxruntime"),
    FileKind("a program in Python", r".+\.py", filename="model.py", backend="python"),
    FileKind("a model of PyTorch", r".+\.pth?", filename="model.pt", backend="pytorch"),
    FileKind("a program of PyTorch", r".+\.pt2", filename="model.pt2", backend="pytorch"),
    FileKind("an OpenVINO model", r".+\.xml", filename="model.xml", backend="openvino"),
    FileKind("a Keras model", r".+\.keras", filename="model.keras", backend="tensorflow"),
    FileKind("a SavedModel", r".+\.savedmodel", filename="model.savedmodel", backend="tensorflow"),
    FileKind("a folder that MLflow saved", r".+\.mlflow", filename="model.mlflow", backend="mlflow"),
    FileKind("a model of XGBoost", r".+\.(ubj|bst)|.*xgb.*\.model", filename="model.ubj", backend="xgboost"),
    FileKind("a model of LightGBM", r".+\.lgbm?", filename="model.txt", backend="lightgbm"),
    FileKind("a model of CatBoost", r".+\.cbm", filename="model.cbm", backend="catboost"),
    FileKind("a file of skops", r".+\.skops", filename="model.skops", backend="sklearn"),
    FileKind("a pickled model", r".+\.joblib", filename="model.joblib", backend="sklearn", further=_PICKLE),
    FileKind("a pickled model", r".+\.(pkl|pickle)", filename="model.pkl", backend="sklearn", further=_PICKLE),
    FileKind("weights", r".+\.safetensors", filename="model.safetensors", backend="pytorch", further=_FACTORY),
    FileKind(
        "a Keras model in the older format",
        r".+\.(h5|hdf5)",
        mend=f"save the model of {{path}} as {{folder}}/model.keras, with Keras ({_TENSORFLOW})",
    ),
    FileKind(
        "a TensorFlow graph",
        r"(?!saved_model\.).+\.(pb|graphdef)",
        mend=f"write {{path}} as a SavedModel, {{folder}}/model.savedmodel ({_TENSORFLOW})",
    ),
    FileKind(
        "a model of TensorFlow Lite",
        r".+\.tflite",
        mend=f"export the model that {{path}} was made of to ONNX, as {{folder}}/model.onnx ({_EXPORT})",
    ),
    FileKind(
        "a model in PMML",
        r".+\.pmml",
        mend=f"export the model that {{path}} was written from to ONNX, as {{folder}}/model.onnx ({_EXPORT})",
    ),
    FileKind(
        "a model of PaddlePaddle",
        r".+\.(pdmodel|pdiparams)",
        mend="convert {path} with paddle2onnx, to {folder}/model.onnx",
    ),
    FileKind(
        "a TensorRT plan",
        r".+\.(plan|engine)",
        mend=f"serve the ONNX file that {{path}} was built from, as {{folder}}/model.onnx ({_GPUS})",
    ),
)
"""Kinds by name, the most usual first: `.txt` and `.json` are the ends of many other names, too."""

_BY_CONTENTS: Final = {
    "saved_model.pb": FileKind("a SavedModel", filename="model.savedmodel", backend="tensorflow"),
    "MLmodel": FileKind("a folder that MLflow saved", filename="model.mlflow", backend="mlflow"),
}
"""Kinds of folders, by a file in them."""

ALL_KINDS: Final = (*_BY_BYTES, *_BY_NAME, *_BY_CONTENTS.values())
"""Every row."""


def kind_of_name(name: str) -> FileKind | None:
    """What a file or folder is by its name; None where that does not tell."""
    return next((kind for kind in _BY_NAME if re.fullmatch(kind.name, name.lower())), None)


def kind_of_bytes(path: Path) -> FileKind | None:
    """What a file is by its first bytes; None where they do not tell, or there is no such file.

    Raises:
        OSError: If it cannot be read.
    """
    return _kind_by_head(_head(path))


def folder_kind(names: Iterable[str]) -> FileKind | None:
    """What a folder is that holds these names, whatever it is called; None where that does not tell."""
    return next((_BY_CONTENTS[name] for name in names if name in _BY_CONTENTS), None)


def kind_at(path: Path) -> FileKind | None:
    """What a file or folder is: its contents come first, then its name.

    Raises:
        OSError: If it cannot be read.
    """
    if path.is_dir():
        return folder_kind(_names(path)) or kind_of_name(path.name)
    head, named = _head(path), kind_of_name(path.name)
    if b"\0" in head and named is not None and named.backend == "xgboost":
        return _kind_by_head(head) or _XGBOOST_OLD  # that format begins with numbers
    return _kind_by_head(head) or named


def _kind_by_head(head: bytes) -> FileKind | None:
    return next((kind for kind in _BY_BYTES if re.match(kind.begins, head, re.DOTALL | re.IGNORECASE)), None)


def _head(path: Path) -> bytes:
    if not path.is_file():  # to open a pipe would wait for its writer
        return b""
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def _names(path: Path) -> Iterator[str]:
    return (entry.name for entry in path.iterdir())
