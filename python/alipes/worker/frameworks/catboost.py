"""Opens models of CatBoost: its own binary files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Final

import numpy as np

from alipes.signature import ANY, Port
from alipes.worker.frameworks.methods import MethodsModel, as_text
from alipes.worker.frameworks.opened import Opening, reading

__all__ = ["CatboostModel", "open_model"]

_NUMBERS: Final = "input"
_CATEGORIES: Final = "categories"

_ROWS_FOR_THREADS: Final = 1000
"""Rows for each thread: CatBoost's trees take about a microsecond for a row, less than it costs to wake a thread."""

_KINDS: Final = {
    "predict_proba": "Probability",
    "predict_log_proba": "LogProbability",
    "raw": "RawFormulaVal",
}


def open_model(opening: Opening) -> CatboostModel:
    """A model of CatBoost.

    Raises:
        LoadError: If the file is damaged, no model of CatBoost's, or takes text or embeddings.
        ModuleNotFoundError: If CatBoost is not installed.
    """
    catboost: Any = import_module("catboost")
    with reading(opening):
        model = catboost.CatBoost().load_model(str(opening.file))
        if len(model.classes_):
            model = catboost.CatBoostClassifier().load_model(str(opening.file))
        elif model.get_all_params().get("loss_function") is not None:
            model = catboost.CatBoostRegressor().load_model(str(opening.file))
    if model.get_text_feature_indices() or model.get_embedding_feature_indices():
        raise opening.refuse("it takes texts or embeddings, which are not served: train it on numbers and categories")
    return CatboostModel(model, opening)


class CatboostModel(MethodsModel):
    """A classifier or regressor: numbers in one input, categories, where it has any, in another, as strings."""

    usual: ClassVar[Sequence[Sequence[str]]] = (("predict", "predict_proba"),)
    others: ClassVar[Sequence[str]] = ("predict_log_proba", "raw")

    def __init__(self, model: Any, opening: Opening) -> None:
        """Takes the model and the configuration.

        Raises:
            LoadError: If the configuration has outputs that the model has not.
        """
        self._model = model
        self._threads = opening.threads
        columns = len(model.feature_names_)
        self._categories: list[int] = list(model.get_cat_feature_indices())
        self._numbers = [at for at in range(columns) if at not in set(self._categories)]
        ports = [
            Port(_NUMBERS, "FP32", (ANY, len(self._numbers))),
            Port(_CATEGORIES, "BYTES", (ANY, len(self._categories))),
        ]
        self.declare(opening, [port for port in ports if port.shape[1]])

    def has(self, method: str) -> bool:
        """Probabilities are a classifier's."""
        return method in ("predict", "raw") or len(self._model.classes_) > 0

    def rows(self, inputs: Mapping[str, np.ndarray]) -> Any:
        """The columns in the model's order."""
        if not self._categories:
            return inputs[_NUMBERS]
        found = np.empty((len(inputs[_CATEGORIES]), len(self._numbers) + len(self._categories)), object)
        found[:, self._categories] = as_text(inputs[_CATEGORIES])
        if self._numbers:
            found[:, self._numbers] = inputs[_NUMBERS]
        return found

    def call(self, method: str, rows: Any) -> Any:
        """What the model predicts: under `predict` what its own `predict` does, of classes their names."""
        kind = {"prediction_type": _KINDS[method]} if method in _KINDS else {}
        return self._model.predict(
            rows, thread_count=max(1, min(self._threads, len(rows) // _ROWS_FOR_THREADS)), **kind
        )
