"""Prepares the steps behind a network that tells classes: shares of one, and the best classes with their names."""

from __future__ import annotations

from typing import Any, Final

from alipes.backends.steps.backend import StepBackend, list_tensor
from alipes.config.datatypes import v2_name
from alipes.config.step_parameters import SOFTMAX_PARAMETERS, TOP_K_PARAMETERS

__all__ = ["SoftmaxBackend", "TopKBackend"]

_HOLDS: Final = {"BYTES": "labels", "FP32": "scores", "INT64": "indices"}
"""What an output of the best classes holds, which follows from its type."""

_DEFAULT_COUNT: Final = 5


class SoftmaxBackend(StepBackend):
    """Prepares one version of a step that makes shares of one, along the last axis."""

    kind = "softmax"
    rows = SOFTMAX_PARAMETERS

    def complete_tensors(self) -> None:
        """List the scores, and their shares in the same sizes."""
        config = self.draft.config
        if not config.input:
            list_tensor(config.input, "scores", "FP32", [-1])
        if not config.output and len(config.input) == 1:
            list_tensor(config.output, "probabilities", "FP32", config.input[0].dims)

    def step(self) -> dict[str, Any]:
        """Nothing to say beyond the tensors."""
        (scores,), (shares,) = self.tensors("input", 1), self.tensors("output", 1)
        self.check_tensor("input", scores, ("FP32",), [-1] * len(scores.dims))
        self.check_tensor("output", shares, ("FP32",), list(scores.dims))
        return {}


class TopKBackend(StepBackend):
    """Prepares one version of a step that finds the best classes of each row."""

    kind = "top_k"
    rows = TOP_K_PARAMETERS

    def complete_tensors(self) -> None:
        """List the scores, and the names, scores and numbers of the best."""
        config = self.draft.config
        if not config.input:
            list_tensor(config.input, "scores", "FP32", [-1])
        if not config.output:
            count = self.parameters.classes("k") or _DEFAULT_COUNT
            for datatype, name in _HOLDS.items():
                list_tensor(config.output, name, datatype, [count])
        labels = self.parameters.texts.get("labels", "")
        for output in config.output:
            if v2_name(output.data_type) == "BYTES" and not output.label_filename:
                output.label_filename = labels

    def step(self) -> dict[str, Any]:
        """How many classes, and what each output holds."""
        (scores,), outputs = self.tensors("input", 1), list(self.draft.config.output)
        self.check_tensor("input", scores, ("FP32",), [-1])
        if not outputs:
            raise self.error("has no output, expected one to three", "output")
        count = self.parameters.classes("k") or (outputs[0].dims[0] if len(outputs[0].dims) == 1 else _DEFAULT_COUNT)
        for output in outputs:
            self.check_tensor("output", output, tuple(_HOLDS), [count])
        holds = [_HOLDS[v2_name(output.data_type)] for output in outputs]
        if len(set(holds)) < len(holds):
            raise self.error("has two outputs of one type: names are strings, scores FP32, numbers INT64", "output")
        if count < 1 or 0 < scores.dims[0] < count:
            raise self.error(f"is asked for the best {count} of {scores.dims[0]} classes", "parameters.k")
        return {"count": count, "softmax": self.parameters.switch("softmax", False), "outputs": holds}
