"""Opens models of scikit-learn: files of skops and, where the operator allows them, pickles."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Final

import numpy as np

from alipes.signature import ANY, Port
from alipes.worker.current import current
from alipes.worker.frameworks.methods import MethodsModel, as_text, listed_inputs
from alipes.worker.frameworks.opened import Opening, reading
from alipes.worker.frameworks.releases import release_explained
from alipes.worker.loading import LoadError
from alipes.worker.triton.logger import Logger

__all__ = ["SklearnModel", "open_model"]

_INPUT: Final = "input"
_AGAIN: Final = "as model.skops or as ONNX"
_TASKS: Final = ("Classifier", "Regressor")

EXPORTED: Final = frozenset(
    {
        *(f"{kind}{task}" for kind in ("RandomForest", "ExtraTrees", "GradientBoosting") for task in _TASKS),
        *(f"{kind}{task}" for kind in ("DecisionTree", "MLP") for task in _TASKS),
        *("LinearRegression", "LogisticRegression", "Ridge", "Lasso", "ElasticNet", "GaussianNB", "KMeans"),
    }
)
"""Estimators whose exports to ONNX answer the same, and sooner.

A test compares the answers. A row of six columns took 4 to 11 µs of a core instead of 0.07 to 7 ms, 32 rows at most a
seventh of the time (scikit-learn 1.9, ONNX Runtime 1.31, estimators as they are made without arguments).
"""

_AROUND: Final = frozenset({"Pipeline", "StandardScaler", "MinMaxScaler", "Normalizer", "PCA"})
"""What may stand around them."""


def open_model(opening: Opening) -> SklearnModel:
    """A model of scikit-learn, or whatever behaves like one.

    Raises:
        LoadError: If the file is damaged, of a newer release, holds types that are not trusted, or no model.
        ModuleNotFoundError: If scikit-learn, or skops for its files, is not installed.
    """
    import_module("sklearn")
    read = _read_skops if opening.file.suffix == ".skops" else _read_pickle
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        found = read(opening)
    _check_release(opening, [one.message for one in shown])
    _check_fitted(opening, found)
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    model = SklearnModel(found, opening)
    if current.link is not None and _exports_to_onnx(found):
        Logger.log_info(
            f"model '{opening.model_name}' can be exported to ONNX, which mostly answers sooner than scikit-learn: "
            "alipes help export"
        )
    return model


def _read_skops(opening: Opening) -> Any:
    skops: Any = import_module("skops.io")
    with reading(opening):
        untrusted = skops.get_untrusted_types(file=opening.file)
    if untrusted:
        opening.need_pickles(f"types that skops does not trust by itself ({', '.join(sorted(untrusted))})")
    with release_explained(opening, again=_AGAIN), reading(opening):
        return skops.load(opening.file, trusted=untrusted)


def _read_pickle(opening: Opening) -> Any:
    opening.need_pickles("a pickle")
    with release_explained(opening, again=_AGAIN), reading(opening):
        return import_module("joblib").load(opening.file)


def _check_release(opening: Opening, shown: Sequence[Warning | str]) -> None:
    """Stops at a file of a newer release, and warns of one of an older.

    Raises:
        LoadError: If a newer release made it.
    """
    kind: Any = import_module("sklearn.exceptions").InconsistentVersionWarning
    for one in shown:
        if not isinstance(one, kind):
            continue
        made, here = str(one.original_sklearn_version), str(one.current_sklearn_version)
        if _release(made) > _release(here):
            raise opening.refuse(
                f"scikit-learn {made} wrote it, and {here} is installed: install a newer one, with: pip install "
                f"--upgrade 'scikit-learn>={made}'"
            )
        if current.link is not None:
            Logger.log_warn(
                f"model '{opening.model_name}' was written by scikit-learn {made} and is read by {here}, which may "
                "answer otherwise: write it again, or install the release that wrote it"
            )
        return


def _check_fitted(opening: Opening, found: Any) -> None:
    """Stops at an estimator that has learnt nothing yet.

    Raises:
        LoadError: If it is one.
    """
    unfitted: Any = import_module("sklearn.exceptions").NotFittedError
    try:
        import_module("sklearn.utils.validation").check_is_fitted(found)
    except unfitted:
        raise opening.refuse(f"{type(found).__name__} was not fitted before it was written: call fit first") from None
    except TypeError:
        return  # no estimator, but perhaps something with the same methods


def _release(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:2]]


def _own_threads(found: Any) -> dict[str, int]:
    """The parameters by which estimators take more than one thread; below 0 they take all but some."""
    if not hasattr(found, "get_params"):
        return {}
    return {
        key: value
        for key, value in found.get_params().items()
        if key.rpartition("__")[2] == "n_jobs" and isinstance(value, int) and value != 1
    }


def _exports_to_onnx(found: Any) -> bool:
    """Whether an estimator, and all that it is made of, is of those whose exports are known to be quicker and equal."""
    parts = found.get_params().values() if hasattr(found, "get_params") else ()
    estimators = {type(one) for one in (found, *parts) if hasattr(one, "fit")}
    names = {one.__name__ for one in estimators if one.__module__.startswith("sklearn.")}
    return len(names) == len(estimators) and bool(names & EXPORTED) and names <= EXPORTED | _AROUND


class SklearnModel(MethodsModel):
    """An estimator, a transformer or a pipeline."""

    usual: ClassVar[Sequence[Sequence[str]]] = (("predict", "predict_proba"), ("transform",), ("score_samples",))
    others: ClassVar[Sequence[str]] = ("decision_function", "predict_log_proba")

    def __init__(self, found: Any, opening: Opening) -> None:
        """Takes what the file held and the configuration.

        Raises:
            LoadError: If it cannot be served.
        """
        self._found = found
        self._own_threads = _own_threads(found)
        self.set_threads(opening.threads)
        self._names = [str(name) for name in getattr(found, "feature_names_in_", ())]
        inputs = self._inputs(opening)
        self._frames = bool({port.name for port in inputs} & set(self._names))
        if self._frames and find_spec("pandas") is None:
            raise opening.refuse("its columns have names of their own, for which pandas is needed: pip install pandas")
        try:
            self.declare(opening, inputs)
        except LoadError:
            if opening.config.get("input"):
                raise
            # Some that were fitted on single precision take nothing else.
            self.declare(opening, [Port(port.name, "FP32", port.shape) for port in inputs])

    @property
    def adapts_threads(self) -> bool:
        """Whether it can: the threads of scikit-learn's libraries are set at any time."""
        return True

    def set_threads(self, count: int) -> None:
        """Sets the threads of estimators that have more than one, and of OpenMP and BLAS under all of them."""
        if self._own_threads:
            most = {key: count if value <= 0 else min(count, value) for key, value in self._own_threads.items()}
            self._found.set_params(**most)
        import_module("threadpoolctl").threadpool_limits(count)

    def has(self, method: str) -> bool:
        """Whether the estimator has it; some have `predict_proba` only with some settings."""
        return callable(getattr(self._found, method, None))

    def rows(self, inputs: Mapping[str, np.ndarray]) -> Any:
        """One matrix, or a table of the columns by name; strings alone, one for each row, as a list of documents."""
        columns = {name: as_text(array) if array.dtype == object else array for name, array in inputs.items()}
        if self._frames:
            pandas: Any = import_module("pandas")
            return pandas.DataFrame({name: column.reshape(len(column)) for name, column in columns.items()})
        [rows] = columns.values()
        return rows.ravel() if self._takes_documents(rows) else rows

    def call(self, method: str, rows: Any) -> Any:
        """What the estimator gives."""
        return getattr(self._found, method)(rows)

    def _takes_documents(self, rows: np.ndarray) -> bool:
        return rows.dtype == object and rows.shape[1:] == (1,) and not hasattr(self._found, "n_features_in_")

    def _inputs(self, opening: Opening) -> list[Port]:
        """The inputs of the configuration, else one matrix of as many columns as the estimator was fitted on."""
        listed = listed_inputs(opening)
        columns = getattr(self._found, "n_features_in_", None)
        if listed and not set(self._names).issuperset(port.name for port in listed):
            if len(listed) > 1:
                known = f" ({', '.join(self._names[:8])})" if self._names else ""
                raise opening.refuse(
                    "the configuration has several inputs; the model takes one matrix, or columns under the names that "
                    f"it was fitted with{known}"
                )
            if columns is None:
                return listed
            return [Port(listed[0].name, listed[0].datatype, (ANY, columns))]
        if listed:
            return listed
        return [] if columns is None else [Port(_INPUT, "FP64", (ANY, columns))]
