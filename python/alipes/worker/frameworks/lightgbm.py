"""Opens models of LightGBM: its own text files."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, Final

import numpy as np

from alipes.worker.frameworks.forest import Forest, ForestModel
from alipes.worker.frameworks.opened import Opening, reading

__all__ = ["LightgbmForest", "open_forest", "open_model"]

_ROWS_FOR_THREADS: Final = 16
"""Rows for each thread: one of 500 trees takes 0.1 ms, so that less would not outweigh the wait for another core."""

_NEWEST: Final = 4
"""The version of the format that the releases 4 of LightGBM read and write."""

_END: Final = "\nend of trees\n"


def open_model(opening: Opening) -> ForestModel:
    """A model of LightGBM."""
    return ForestModel(open_forest(opening), opening)


def open_forest(opening: Opening) -> LightgbmForest:
    """Reads the file.

    Raises:
        LoadError: If it is no file of LightGBM's, of a newer format, or damaged.
        ModuleNotFoundError: If LightGBM is not installed.
    """
    lightgbm: Any = import_module("lightgbm")
    text = opening.file.read_bytes().decode("utf-8", errors="replace") if opening.file.is_file() else ""
    header = _header(text)
    if header is None:
        raise opening.refuse("it is no model of LightGBM's: write one with Booster.save_model('model.txt')")
    version = re.search(r"\d+", header.get("version", ""))
    if version is not None and int(version[0]) > _NEWEST:
        raise opening.refuse(
            f"its format is {header['version']}, and the installed LightGBM {lightgbm.__version__} reads v{_NEWEST}: "
            "install a newer one, with: pip install --upgrade lightgbm"
        )
    if _END not in text:
        raise opening.refuse("it ends in the middle of a tree: copy the whole file")
    with reading(opening):
        lightgbm.register_logger(_Quiet())
        return LightgbmForest(lightgbm.Booster(model_str=text), header, opening.threads)


def _header(text: str) -> dict[str, str] | None:
    """The lines `key=value` in front of the trees; none where the text is of another kind."""
    if not text.startswith("tree\n"):
        return None
    lines = (line.partition("=") for line in text.partition("\n\n")[0].splitlines()[1:])
    return {key: value for key, _, value in lines}


class _Quiet:
    """Takes what LightGBM prints for each model it reads; its errors are exceptions as well."""

    def info(self, text: str) -> None:
        """Nothing that an operator has to know."""

    def warning(self, text: str) -> None:
        """Advice for who trains."""


class LightgbmForest(Forest):
    """A booster. `predict` is what `Booster.predict` gives."""

    datatype = "FP64"

    def __init__(self, booster: Any, header: dict[str, str], threads: int) -> None:
        """Takes the booster, the lines in front of its trees, and how many threads a large batch may have.

        Raises:
            lightgbm.basic.LightGBMError: If it cannot predict.
        """
        self._booster = booster
        self._threads = threads
        objective = header.get("objective", "").split()
        self.columns = booster.num_feature()
        self.classes = {
            "binary": 2,
            "multiclass": int(header["num_class"]),
            "multiclassova": int(header["num_class"]),
        }.get(objective[0] if objective else "", 0)
        self.width = self.predict(np.zeros((1, self.columns), np.float32)).size

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """What the objective makes of the margin: a probability, those of all classes, a number."""
        return self._predict(rows)

    def margin(self, rows: np.ndarray) -> np.ndarray:
        """The sums of the leaves."""
        return self._predict(rows, raw_score=True)

    def contributions(self, rows: np.ndarray) -> np.ndarray:
        """Each column's share of the margin."""
        return self._predict(rows, pred_contrib=True)

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Of each class; of two classes that of the second."""
        return self._predict(rows)

    def _predict(self, rows: np.ndarray, **options: bool) -> np.ndarray:
        threads = max(1, min(self._threads, len(rows) // _ROWS_FOR_THREADS))
        found: np.ndarray = self._booster.predict(rows, num_threads=threads, **options)
        return found
