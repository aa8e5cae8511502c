"""Prepares averagers: overlapping predictions come in, and their mean goes out once no later one covers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alipes.backends.streaming.backend import StreamingBackend, dims_of, float_tensor, one_tensor
from alipes.config.datatypes import config_name
from alipes.config.streaming_parameters import AVERAGER_PARAMETERS
from alipes.config.streaming_states import Shapes, mean_states

__all__ = ["AveragerBackend"]

_FLOATS = ("TYPE_FP32", "TYPE_FP64")


class AveragerBackend(StreamingBackend):
    """Prepares one version of an averager."""

    kind = "averager"
    rows = AVERAGER_PARAMETERS

    def complete_tensors(self) -> None:
        """List the predictions and their mean."""
        config = self.draft.config
        if not config.input:
            channels = self.size("channels", 0)
            axes = [self.size("batch_size", 1), *([channels] if channels else []), self.size("kernel_size")]
            float_tensor(config.input, "update", axes)
        if not config.output:
            batch, *channels_, _ = self._predictions()
            float_tensor(config.output, "output_stream", [1, *channels_, batch * self.size("update_size")])
            config.output[0].data_type = config.input[0].data_type

    def update(self) -> dict[str, Any]:
        """The sizes that follow from the tensors and `num_updates`."""
        batch, *axis, kernel = self._predictions()
        tensor, output = one_tensor(self, "input"), one_tensor(self, "output")
        means = dims_of(self, output, "[1, channels, samples] or [1, samples]")
        if means[:-1] != [1, *axis] or means[-1] % batch:
            raise self.error(
                f"has '{output.name}' with dims {means}, expected {[1, *axis]} and {batch} x the size of an update",
                "output.dims",
            )
        if tensor.data_type != output.data_type or config_name(tensor.data_type) not in _FLOATS:
            raise self.error(
                f"has '{tensor.name}' of {config_name(tensor.data_type)}, expected {' or '.join(_FLOATS)} for both "
                "tensors",
                "input.data_type",
            )
        update, updates = means[-1] // batch, self.size("num_updates")
        if update * updates > kernel:
            raise self.error(
                f"has not enough data: {updates} updates of {update} samples are more than the {kernel} of a "
                "prediction",
                "parameters.num_updates",
            )
        channels = axis[0] if axis else 0
        sizes = {"update_size": update, "batch_size": batch, "kernel_size": kernel}
        self.check_sizes({**sizes, "channels": channels} if channels else sizes)
        sizes = {"update": update, "updates": updates, "batch": batch, "channels": channels, "kernel": kernel}
        return {**sizes, "unbiased": True} if self.size("unbiased_start", 0) else sizes

    def states(self, update: Mapping[str, Any]) -> Shapes:
        """Sums that are not complete, and the number of predictions where it counts."""
        sums = update["update"] * (update["updates"] + update["batch"] - 1)
        return mean_states(update["channels"], sums, unbiased=update.get("unbiased", False))

    def _predictions(self) -> list[int]:
        tensor = one_tensor(self, "input")
        return dims_of(self, tensor, "[predictions, channels, samples] or [predictions, samples]")
