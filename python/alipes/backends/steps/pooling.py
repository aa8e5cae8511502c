"""Prepares the step that makes one vector of the vectors of a text's tokens."""

from __future__ import annotations

from typing import Any

from alipes.backends.steps.backend import StepBackend, list_tensor
from alipes.config.step_parameters import MEAN_POOLING_PARAMETERS

__all__ = ["MeanPoolingBackend"]


class MeanPoolingBackend(StepBackend):
    """Prepares one version of a step that takes the mean over tokens."""

    kind = "mean_pooling"
    rows = MEAN_POOLING_PARAMETERS

    def complete_tensors(self) -> None:
        """List the vectors, the mask, and their mean."""
        config = self.draft.config
        if not config.input:
            list_tensor(config.input, "vectors", "FP32", [-1, -1])
            list_tensor(config.input, "attention_mask", "INT64", [-1])
        if not config.output:
            width = next((tensor.dims[-1] for tensor in config.input if len(tensor.dims) == 2), -1)
            list_tensor(config.output, "vector", "FP32", [width])

    def step(self) -> dict[str, Any]:
        """Which input is which: vectors have two axes, a mask has one."""
        inputs, (mean,) = list(self.draft.config.input), self.tensors("output", 1)
        vectors = [index for index, tensor in enumerate(inputs) if len(tensor.dims) == 2]
        masks = [index for index, tensor in enumerate(inputs) if len(tensor.dims) == 1]
        if len(vectors) != 1 or len(masks) != len(inputs) - 1 or len(masks) > 1:
            raise self.error("needs vectors with dims [tokens, width], and at most a mask with dims [tokens]", "input")
        tokens, width = inputs[vectors[0]].dims
        self.check_tensor("input", inputs[vectors[0]], ("FP32",), [-1, -1])
        self.check_tensor("output", mean, ("FP32",), [width])
        for mask in masks:
            self.check_tensor("input", inputs[mask], ("INT64", "INT32", "FP32"), [tokens])
        return {
            "vectors": vectors[0],
            "mask": masks[0] if masks else None,
            "normalize": self.parameters.switch("normalize", False),
        }
