"""Opens models of XGBoost: its own JSON and UBJSON files."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any, Final

import numpy as np

from alipes.worker.frameworks.forest import Forest, ForestModel, softmax
from alipes.worker.frameworks.opened import Opening, reading
from alipes.worker.frameworks.xgboost_rows import RowsPrediction

__all__ = ["XgboostForest", "open_forest", "open_model"]

_ROWS_FOR_THREADS: Final = 256
"""Rows from which a batch is worth more than one thread.

XGBoost hands rows to threads in blocks of 64, so smaller batches gain nothing, and a second thread that waits for a
core holds the batch up: 500 trees and a row took 0.13 ms with one thread, with two on two busy cores 20 ms.
"""

_VERSIONS: Final = (
    re.compile(rb'"version"\s*:\s*\[(\d+),\s*(\d+),\s*\d+\]\s*\}\s*\Z'),
    re.compile(rb"version\[#L\0{7}\x03i(.)i(.)i.\}\Z", re.DOTALL),
)
"""The last words of a file: which release made it, in JSON and in UBJSON."""


def open_model(opening: Opening) -> ForestModel:
    """A model of XGBoost."""
    return ForestModel(open_forest(opening), opening)


def open_forest(opening: Opening) -> XgboostForest:
    """Reads the file.

    Raises:
        LoadError: If it is no file of XGBoost's, of its old binary format, of a newer release, or damaged.
        ModuleNotFoundError: If XGBoost is not installed.
    """
    xgboost: Any = import_module("xgboost")
    if opening.device != "cpu" and not xgboost.build_info().get("USE_CUDA"):
        raise opening.refuse(
            f"the installed XGBoost has no part for GPUs, and the instance is for {opening.device}: install xgboost in "
            "the place of xgboost-cpu, or write kind: KIND_CPU into instance_group"
        )
    document = opening.file.read_bytes() if opening.file.is_file() else b""
    if not re.match(rb"\{(L\0|\s*\"|\[#L\0|\$)", document):
        raise opening.refuse(
            "it is neither JSON nor UBJSON; XGBoost's old binary format is no longer read by XGBoost itself: open the "
            "file with the release that wrote it (before 3.1), and save it with save_model('model.ubj')"
        )
    if document.startswith(b"{L") and not re.search(rb"version\[.{,60}\}\Z", document, re.DOTALL):
        # XGBoost itself reads past the end of it, and dies.
        raise opening.refuse("it ends in the middle: copy the whole file")
    _check_release(opening, document, xgboost.__version__)
    with reading(opening):
        booster = xgboost.Booster({"nthread": 1, "device": opening.device})
        booster.load_model(bytearray(document))
        return XgboostForest(xgboost, booster, opening.threads)


def _check_release(opening: Opening, document: bytes, installed: str) -> None:
    """Stops at a file of a newer release, which an older one may read wrongly without an error."""
    found = next((match for match in (pattern.search(document[-200:]) for pattern in _VERSIONS) if match), None)
    if found is None:
        return
    major, minor = (int(part) if part.isdigit() else part[0] for part in found.groups())
    if (major, minor) > tuple(int(part) for part in re.findall(r"\d+", installed)[:2]):
        raise opening.refuse(
            f"XGBoost {major}.{minor} wrote it, and {installed} is installed: install a newer one, with: pip install "
            f"--upgrade 'xgboost-cpu>={major}.{minor}'"
        )


class XgboostForest(Forest):
    """A booster. `predict` is what `Booster.predict` gives."""

    datatype = "FP32"

    def __init__(self, xgboost: Any, booster: Any, threads: int) -> None:
        """Takes the module, the booster, and how many threads a large batch may have.

        Raises:
            xgboost.core.XGBoostError: If it cannot predict.
        """
        learner = json.loads(booster.save_config())["learner"]
        self._xgboost = xgboost
        self._booster = booster
        self._most_threads = threads
        self._threads = 1
        self._objective: str = learner["objective"]["name"]
        self.columns = booster.num_features()
        self.classes = self._count_classes(learner)
        linear = learner["gradient_booster"]["name"] == "gblinear"
        self._rows = None if linear else RowsPrediction(booster)  # linear models have no such function
        found = self.predict(np.zeros((1, self.columns), np.float32))
        self.width = found.size

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """What the objective makes of the margin: a probability, the class of `multi:softmax`, a number."""
        return self._predict(rows, "value")

    def margin(self, rows: np.ndarray) -> np.ndarray:
        """The sums of the leaves."""
        return self._predict(rows, "margin")

    def contributions(self, rows: np.ndarray) -> np.ndarray:
        """Each column's share of the margin."""
        return self._matrix_predict(rows, pred_contribs=True)

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Of each class; of two classes that of the second."""
        if self._objective in ("binary:logistic", "multi:softprob"):
            return self.predict(rows)
        margin = self.margin(rows)
        return 1 / (1 + np.exp(-margin)) if margin.ndim == 1 else softmax(margin)

    def _count_classes(self, learner: Any) -> int:
        if self._objective.startswith("multi:"):
            return int(learner["learner_model_param"]["num_class"])
        return 2 if self._objective in ("binary:logistic", "binary:logitraw") else 0

    def _predict(self, rows: np.ndarray, kind: str) -> np.ndarray:
        self._set_threads(len(rows))
        if self._rows is None:
            return self._matrix_predict(rows, output_margin=kind == "margin")
        return self._rows.predict(rows, kind)

    def _matrix_predict(self, rows: np.ndarray, **options: bool) -> np.ndarray:
        self._set_threads(len(rows))
        matrix = self._xgboost.DMatrix(rows, nthread=self._threads)
        found: np.ndarray = self._booster.predict(matrix, validate_features=False, **options)
        return found

    def _set_threads(self, rows: int) -> None:
        """To set the number costs a third of a millisecond, so it is done where it changes."""
        wanted = self._most_threads if rows >= _ROWS_FOR_THREADS else 1
        if wanted != self._threads:
            self._booster.set_param({"nthread": wanted})
            self._threads = wanted
