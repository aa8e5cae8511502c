"""Runs models whose outputs are named after their methods, such as `predict`: those of scikit-learn and CatBoost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.check import v2_name
from alipes.worker.frameworks.opened import OpenedModel, Opening

__all__ = ["MethodsModel", "as_text", "listed_inputs"]

_DATATYPES: Final = {
    "bool": "BOOL",
    **{f"{kind}{size}": f"{kind.upper()}{size}" for kind in ("int", "uint") for size in (8, 16, 32, 64)},
    **{f"float{size}": f"FP{size}" for size in (16, 32, 64)},
}


class MethodsModel(OpenedModel):
    """A model with methods that take rows.

    Which of them are called the configuration says, by the names of its outputs; without any, `usual` does. What a
    method gives for one row says which datatype and size its output has.

    Attributes:
        usual: Methods to call where the configuration lists none: those that the model has of the first of these lists
            of which it has any.
        others: Further methods that an output can be named after.
    """

    usual: ClassVar[Sequence[Sequence[str]]]
    others: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def has(self, method: str) -> bool:
        """Whether the model has a method."""

    @abstractmethod
    def rows(self, inputs: Mapping[str, np.ndarray]) -> Any:
        """What the methods take, of the inputs of a batch."""

    @abstractmethod
    def call(self, method: str, rows: Any) -> Any:
        """What a method gives for rows."""

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """What each method gives, as rows of numbers or strings."""
        rows = self.rows(inputs)
        return {method: _table(self.call(method, rows)) for method in self._methods}

    def declare(self, opening: Opening, inputs: Sequence[Port]) -> None:
        """Chooses the methods, and finds out what they give for a row of zeros and empty strings.

        Args:
            opening: The configuration.
            inputs: The model's inputs; none where nobody knows them yet.

        Raises:
            LoadError: If the model lacks a method, or one fails on that row and the configuration lists no outputs.
        """
        listed = [tensor["name"] for tensor in opening.config.get("output", ())]
        self._methods = self._chosen(opening, listed)
        if not inputs:
            return
        try:
            found = self.run({port.name: _zeros(port) for port in inputs})
        except Exception as error:
            if listed:
                return
            text = " ".join(str(error).split())[:400]
            raise opening.refuse(
                f"it fails on a row of zeros ({type(error).__name__}: {text}), so what it answers is not known; list "
                "inputs and outputs in config.pbtxt, each with name, data_type and dims"
            ) from error
        outputs = [
            Port(name, _DATATYPES.get(array.dtype.name, "BYTES"), (ANY, *array.shape[1:]))
            for name, array in found.items()
        ]
        self.signature = Signature(tuple(inputs), tuple(outputs))

    def _chosen(self, opening: Opening, listed: Sequence[str]) -> list[str]:
        known = [name for row in (*self.usual, self.others) for name in row]
        offered = [name for name in known if self.has(name)]
        usual = next((names for names in ([one for one in row if one in offered] for row in self.usual) if names), [])
        if not usual:
            raise opening.refuse(f"what it holds has none of the methods {', '.join(known)}")
        missing = [name for name in listed if name not in offered]
        if missing:
            raise opening.refuse(
                f"the configuration has output '{missing[0]}', and outputs are named after the model's methods, which "
                f"are: {', '.join(offered)}"
            )
        return list(listed) or usual


def listed_inputs(opening: Opening) -> list[Port]:
    """The inputs that the configuration lists, with the batch dimension where it has to be added."""
    config = opening.config
    batch = [ANY] if config.get("max_batch_size", 0) > 0 or not config.get("output") else []
    found = []
    for tensor in config.get("input", ()):
        dims = tensor.get("reshape", {}).get("shape", tensor["dims"])
        found.append(Port(tensor["name"], v2_name(tensor["data_type"]), (*batch, *(int(size) for size in dims))))
    return found


def as_text(array: np.ndarray) -> np.ndarray:
    """An array of `str` objects of one of `bytes` objects.

    Raises:
        UnicodeDecodeError: If one is no UTF-8.
    """
    found = np.empty(array.shape, object)
    found.ravel()[:] = [one.decode() for one in array.ravel()]
    return found


def _zeros(port: Port) -> np.ndarray:
    """One row; of sizes that are left open one as well."""
    shape = [1 if size == ANY else size for size in port.shape]
    if port.datatype == "BYTES":
        return np.full(shape, b"", object)
    kind = next(name for name, datatype in _DATATYPES.items() if datatype == port.datatype)
    return np.zeros(shape, kind)


def _table(found: Any) -> np.ndarray:
    """What a method gave, with at least two dimensions, as every output has; strings as objects."""
    if isinstance(found, list):  # of a classifier with several targets: an array for each
        found = np.stack(found, axis=1)
    if hasattr(found, "toarray"):  # of sparse rows
        found = found.toarray()
    array = np.asarray(found)
    if array.dtype.kind not in "biuf":
        array = array.astype(object)
    return array.reshape(-1, 1) if array.ndim < 2 else array
