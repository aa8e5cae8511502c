"""Bare models of every framework that is installed: the files as their authors save them, without a model's folders."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from support.forests import COLUMNS, ROWS, labels, train_lightgbm, train_xgboost
from support.models import times

__all__ = ["WRITERS", "write_installed"]

_ROWS: Final = ROWS.astype(np.float64)


def _sklearn(folder: Path) -> None:
    joblib: Any = import_module("joblib")
    linear: Any = import_module("sklearn.linear_model")
    joblib.dump(linear.LinearRegression().fit(_ROWS, labels("number")), folder / "regression.joblib")


def _xgboost(folder: Path) -> None:
    train_xgboost("reg:squarederror", "number").save_model(folder / "model.ubj")
    (folder / "model.ubj").rename(folder / "model.bst")  # the name that KServe's pages have


def _lightgbm(folder: Path) -> None:
    (folder / "model.bst").write_text(train_lightgbm("regression", "number").model_to_string())


def _catboost(folder: Path) -> None:
    catboost: Any = import_module("catboost")
    made = catboost.CatBoostRegressor(iterations=5, verbose=0, allow_writing_files=False, thread_count=1)
    made.fit(ROWS, labels("number")).save_model(str(folder / "regressor.cbm"))


def _script(folder: Path) -> None:
    torch: Any = import_module("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(COLUMNS, 1)).save(str(folder / "net.pt"))
    (folder / "config.pbtxt").write_text(
        "max_batch_size: 8\n"
        f'input {{ name: "INPUT__0" data_type: TYPE_FP32 dims: {COLUMNS} }}\n'
        'output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 1 }\n'
    )


def _program(folder: Path) -> None:
    torch: Any = import_module("torch")
    program = torch.export.export(torch.nn.Linear(COLUMNS, 1), (torch.zeros(3, COLUMNS),))
    torch.export.save(program, folder / "net.pt2")


def _saved_model(folder: Path) -> None:
    tensorflow: Any = import_module("tensorflow")
    module = tensorflow.Module()
    numbers = tensorflow.TensorSpec([None, COLUMNS], tensorflow.float32, name="x")
    call = tensorflow.function(lambda x: {"y": x * 2.0}, input_signature=[numbers])
    tensorflow.saved_model.save(module, str(folder / "0001"), signatures={"serving_default": call})


def _keras(folder: Path) -> None:
    keras: Any = import_module("keras")
    keras.Sequential([keras.Input((COLUMNS,)), keras.layers.Dense(1)]).save(folder / "dense.keras")


def _openvino(folder: Path) -> None:
    openvino: Any = import_module("openvino")
    (folder / "times.onnx").write_bytes(times(2.0, COLUMNS).SerializeToString())
    openvino.save_model(openvino.convert_model(str(folder / "times.onnx")), str(folder / "times.xml"))
    (folder / "times.onnx").unlink()


def _mlflow(folder: Path) -> None:
    mlflow: Any = import_module("mlflow.onnx")
    made = folder.with_name(f"{folder.name}.made")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlflow.save_model(times(2.0, COLUMNS), str(made))
    folder.rmdir()
    made.rename(folder)


WRITERS: Final[dict[str, tuple[str, str, Callable[[Path], None]]]] = {
    "sklearn": ("sklearn", "sklearn", _sklearn),
    "xgboost": ("trees", "xgboost", _xgboost),
    "lightgbm": ("trees", "lightgbm", _lightgbm),
    "catboost": ("trees", "catboost", _catboost),
    "torchscript": ("torch", "torch", _script),
    "torchexport": ("torch", "torch", _program),
    "savedmodel": ("keras", "tensorflow", _saved_model),
    "keras": ("keras", "tensorflow", _keras),
    "openvino": ("openvino", "openvino", _openvino),
    "mlflow": ("mlflow", "mlflow", _mlflow),
}
"""Model -> the extra that brings its framework, the package that has to be there, and what writes it."""


def write_installed(store: Path) -> list[str]:
    """Write the bare models whose frameworks are here; returns their names."""
    found = [name for name, (_, package, _) in WRITERS.items() if importlib.util.find_spec(package) is not None]
    for name in found:
        (store / name).mkdir(parents=True)
        WRITERS[name][2](store / name)
    return found
