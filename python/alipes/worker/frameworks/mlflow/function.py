"""Runs the flavour that every folder of MLflow has: a function of Python, which takes a table or tensors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from alipes.worker.frameworks.opened import OpenedModel, reading
from alipes.worker.frameworks.releases import release_explained

if TYPE_CHECKING:
    from alipes.signature import Signature
    from alipes.worker.frameworks.mlflow.folder import MlflowFolder
    from alipes.worker.frameworks.opened import Opening

__all__ = ["FunctionModel", "open_function"]

_BINARY: Final = "binary"
_INSTALL: Final = "install what the requirements.txt of the folder lists beside alipes"


def open_function(opening: Opening, folder: MlflowFolder) -> FunctionModel:
    """Loads the function, and whatever it brings along. MLflow itself is kept from reporting its use.

    Raises:
        LoadError: If MLflow cannot load it, or a package that the function needs is not installed.
        ModuleNotFoundError: If MLflow is not installed.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pyfunc: Any = import_module("mlflow.pyfunc")
        with release_explained(opening, install=_INSTALL), reading(opening):
            function = pyfunc.load_model(str(folder.path))
    listed = [tensor["name"] for tensor in opening.config.get("output", ())]
    return FunctionModel(function, folder.signature, folder.columns, listed)


class FunctionModel(OpenedModel):
    """A function of Python."""

    def __init__(
        self, function: Any, signature: Signature | None, columns: Mapping[str, str], listed: Sequence[str]
    ) -> None:
        """Takes the function, its signature, the types of its inputs' columns, and the outputs of the configuration."""
        self.signature = signature
        self._function = function
        self._columns = columns
        ports = signature.outputs if signature is not None else ()
        self._outputs = [port.name for port in ports] or list(listed)
        self._flat = {port.name for port in ports if len(port.shape) == 1}  # a number a row, without an axis for it
        self._tensors = signature is not None and not columns

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Calls the function with the rows of a batch."""
        found = self._function.predict(self._data(inputs))
        if isinstance(found, Mapping) or hasattr(found, "columns"):
            missing = [name for name in self._outputs if name not in found]
            if not missing:
                return {name: self._rows(name, found[name]) for name in self._outputs}
            found = found if len(self._outputs) == 1 else None
        if found is None or len(self._outputs) != 1:
            raise ValueError(f"the function did not give the outputs {', '.join(self._outputs)}")
        return {self._outputs[0]: self._rows(self._outputs[0], found)}

    def _data(self, inputs: Mapping[str, np.ndarray]) -> Any:
        """A table of columns, tensors by name, or one array: as the signature says."""
        if len(inputs) == 1 and not self._columns:
            return next(iter(inputs.values()))
        if self._tensors:
            return dict(inputs)
        pandas: Any = import_module("pandas")
        return pandas.DataFrame({name: self._column(name, array) for name, array in inputs.items()})

    def _column(self, name: str, array: np.ndarray) -> Any:
        values = array.reshape(len(array))
        if array.dtype == object and self._columns.get(name) != _BINARY:
            return [one.decode() for one in values]
        return values

    def _rows(self, name: str, found: Any) -> np.ndarray:
        """What the function gave for an output, as an array with rows; text as bytes."""
        array = np.asarray(found)
        array = array.reshape(len(array)) if name in self._flat else array
        if array.ndim == 1 and name not in self._flat:
            array = array.reshape(-1, 1)
        if array.dtype.kind in "biuf":
            return array
        texts = np.empty(array.shape, object)
        texts.ravel()[:] = [one.encode() if isinstance(one, str) else one for one in array.ravel()]
        return texts
