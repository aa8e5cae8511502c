"""What models of trees have in common, whichever library reads their file: scores, probabilities, classes of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.check import v2_name
from alipes.worker.frameworks.opened import OpenedModel, Opening

__all__ = ["Forest", "ForestModel", "listed_datatype", "softmax", "threshold_of"]

_FLOATS: Final = ("FP32", "FP64")


class Forest(ABC):
    """A file of trees that its library has opened.

    Attributes:
        columns: Numbers of a row.
        classes: How many classes it tells apart; 0 where it predicts no class.
        width: Numbers that `predict` gives for a row.
        datatype: Their datatype, as the library computes it.
    """

    columns: int
    classes: int
    width: int
    datatype: str

    @abstractmethod
    def predict(self, rows: np.ndarray) -> np.ndarray:
        """What the library predicts, of shape `[rows]` or `[rows, width]`."""

    @abstractmethod
    def margin(self, rows: np.ndarray) -> np.ndarray:
        """The sums of the leaves, before they become a probability or whatever the objective makes of them."""

    @abstractmethod
    def contributions(self, rows: np.ndarray) -> np.ndarray:
        """Each column's share of the margin and, last, the bias: `[rows, columns + 1]`, of classes one after another.

        Source: SHAP values of trees, Lundberg and Lee.
        """

    @abstractmethod
    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """The probability of each class, of shape `[rows, classes]`; of two classes that of the second, `[rows]`."""

    def probability_columns(self, rows: np.ndarray) -> np.ndarray:
        """The probability of each class, of two classes as well."""
        found = self.probabilities(rows)
        return found if found.ndim == 2 else np.stack((1 - found, found), axis=1)

    def classes_of(self, rows: np.ndarray, threshold: float) -> np.ndarray:
        """The number of the class of each row: the likeliest, of two classes the second above the threshold."""
        found = self.probabilities(rows)
        return np.argmax(found, axis=1) if found.ndim == 2 else found > threshold

    def contribution_shape(self) -> tuple[int, ...]:
        """The shape of `contributions` for a row."""
        return (self.classes, self.columns + 1) if self.classes > 2 else (self.columns + 1,)


class ForestModel(OpenedModel):
    """A forest whose outputs are named after what they are: `predict` and, where the configuration lists them, more."""

    INPUT: Final = "input"

    def __init__(self, forest: Forest, opening: Opening) -> None:
        """Takes the forest and the configuration, which says which outputs to compute.

        Raises:
            LoadError: If the threshold is no number.
        """
        threshold, kind = threshold_of(opening), forest.datatype
        outputs: dict[str, tuple[Port, Callable[[np.ndarray], np.ndarray]]] = {}

        def offer(
            name: str, compute: Callable[[np.ndarray], np.ndarray], *sizes: int, kinds: tuple[str, ...] = _FLOATS
        ) -> None:
            datatype = listed_datatype(opening, "output", name, kind if kind in kinds else kinds[0], kinds)
            outputs[name] = (Port(name, datatype, (ANY, *sizes)), compute)

        offer("predict", forest.predict, forest.width)
        listed = {tensor["name"] for tensor in opening.config.get("output", ())}
        if listed:
            offer("margin", forest.margin, max(forest.classes, 1) if forest.classes != 2 else 1)
            offer("contributions", forest.contributions, *forest.contribution_shape())
        if listed and forest.classes:
            offer("predict_proba", forest.probability_columns, forest.classes)
            offer("class", lambda rows: forest.classes_of(rows, threshold), 1, kinds=("INT64", "INT32"))
        rows = Port(self.INPUT, listed_datatype(opening, "input", self.INPUT, "FP32", _FLOATS), (ANY, forest.columns))
        self.signature = Signature((rows,), tuple(port for port, _ in outputs.values()))
        self._outputs = {
            name: (compute, port.shape) for name, (port, compute) in outputs.items() if name in (listed or outputs)
        }

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The outputs that the configuration lists."""
        rows = inputs[self.INPUT]
        return {name: compute(rows).reshape(shape) for name, (compute, shape) in self._outputs.items()}


def listed_datatype(opening: Opening, side: str, name: str, usual: str, others: tuple[str, ...]) -> str:
    """The datatype that the configuration lists for a tensor where that is one of several; else the usual one."""
    listed = {tensor["name"]: v2_name(tensor.get("data_type", "")) for tensor in opening.config.get(side, ())}
    found = listed.get(name)
    return found if found in others else usual


def threshold_of(opening: Opening) -> float:
    """The parameter `threshold`: the probability above which a row is of the second of two classes.

    Raises:
        LoadError: If it is no number.
    """
    text = opening.parameter("threshold", "0.5")
    try:
        return float(text)
    except ValueError:
        raise opening.refuse(f"parameter threshold must be a number such as 0.5, got '{text}'") from None


def softmax(margin: np.ndarray) -> np.ndarray:
    """Probabilities of margins `[rows, classes]`."""
    powers: np.ndarray = np.exp(margin - margin.max(axis=1, keepdims=True))
    found: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return found
