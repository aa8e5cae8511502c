"""Opens models of trees as Triton's backend `fil` lays them out: its parameters, names and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks import lightgbm, xgboost
from alipes.worker.frameworks.forest import Forest, threshold_of
from alipes.worker.frameworks.opened import OpenedModel, Opening

__all__ = ["FilModel", "open_model"]

_INPUT: Final = "input__0"
_OUTPUT: Final = "output__0"
_CONTRIBUTIONS: Final = "treeshap_output"


def open_model(opening: Opening) -> FilModel:
    """The model, by the library that the parameter `model_type` names."""
    forest = lightgbm if opening.parameter("model_type") == "lightgbm" else xgboost
    return FilModel(forest.open_forest(opening), opening)


class FilModel(OpenedModel):
    """A forest with one output of numbers: classes, probabilities, or what the library predicts.

    Source: Triton's FIL backend, "Model Configuration" and "Model Explainability with Shapley Values".
    """

    def __init__(self, forest: Forest, opening: Opening) -> None:
        """Takes the forest and the configuration, whose parameters say what the output is.

        Raises:
            LoadError: If a parameter is wrong, or asks for classes of a model that has none.
        """
        listed = {tensor["name"]: tensor for tensor in opening.config.get("output", ())}
        compute, width = _output(forest, opening, [int(size) for size in listed.get(_OUTPUT, {}).get("dims", ())])
        outputs = [Port(_OUTPUT, "FP32", (ANY, width))]
        self._computed: dict[str, tuple[Callable[[np.ndarray], np.ndarray], tuple[int, ...]]] = {}
        self._computed[_OUTPUT] = (compute, (ANY, width))
        if _CONTRIBUTIONS in listed:
            shape = (ANY, *forest.contribution_shape())
            outputs.append(Port(_CONTRIBUTIONS, "FP32", shape))
            self._computed[_CONTRIBUTIONS] = (forest.contributions, shape)
        self.signature = Signature((Port(_INPUT, "FP32", (ANY, forest.columns)),), tuple(outputs))

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The numbers of each row."""
        rows = inputs[_INPUT]
        return {name: compute(rows).reshape(shape) for name, (compute, shape) in self._computed.items()}


def _output(forest: Forest, opening: Opening, dims: list[int]) -> tuple[Callable[[np.ndarray], np.ndarray], int]:
    """What computes the output, and how many numbers a row has.

    Raises:
        LoadError: If a parameter is wrong, or asks for classes of a model that has none.
    """
    threshold = threshold_of(opening)
    proba = opening.flag("predict_proba", False)
    classes = opening.flag("output_class", opening.flag("is_classifier", False))
    if not (proba or classes):
        return forest.predict, forest.width
    if not forest.classes:
        key = "predict_proba" if proba else "output_class"
        raise opening.refuse(f"parameter {key} is true, but the model predicts numbers, not classes: set it to false")
    if not proba:
        return lambda rows: forest.classes_of(rows, threshold), 1
    if forest.classes == 2 and dims != [2]:
        return forest.probabilities, 1
    return forest.probability_columns, forest.classes
