"""Prepares snapshotters: updates come in, and windows of the newest samples go out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alipes.backends.streaming.backend import StreamingBackend, dims_of, float_tensor, one_tensor
from alipes.config.datatypes import config_name, element_bytes
from alipes.config.limits import MAX_STEP_TENSORS
from alipes.config.streaming_parameters import SNAPSHOTTER_PARAMETERS
from alipes.config.streaming_states import Shapes, window_states
from alipes.config.values import read_int

__all__ = ["SnapshotterBackend"]

_WINDOWS = "[windows, channels, samples] or [windows, samples]"


class SnapshotterBackend(StreamingBackend):
    """Prepares one version of a snapshotter."""

    kind = "snapshotter"
    rows = SNAPSHOTTER_PARAMETERS

    def complete_tensors(self) -> None:
        """List the outputs that `channels` names, and the update that feeds them all."""
        config = self.draft.config
        if not config.output:
            batch, samples = self.size("batch_size", 1), self.size("snapshot_size")
            for name, channels in self._named_channels().items():
                float_tensor(config.output, name, [batch, *([channels] if channels else []), samples])
        if not config.input:
            outputs = [dims_of(self, output, _WINDOWS) for output in config.output]
            channels = sum(_channels(dims) for dims in outputs)
            float_tensor(config.input, "snapshot_update", [1, channels, outputs[0][0] * self.size("stride_size")])
            config.input[0].data_type = config.output[0].data_type

    def update(self) -> dict[str, Any]:
        """The sizes that follow from the tensors."""
        config = self.draft.config
        tensor = one_tensor(self, "input")
        update = dims_of(self, tensor, "[1, channels, samples]")
        if not config.output:
            raise self.error("has no output", "output")
        outputs = [dims_of(self, output, _WINDOWS) for output in config.output]
        batch, samples = outputs[0][0], outputs[0][-1]
        if any((dims[0], dims[-1]) != (batch, samples) for dims in outputs):
            raise self.error(f"has outputs with dims {outputs}, expected as many windows of one length", "output.dims")
        channels = sum(_channels(dims) for dims in outputs)
        if update[:-1] != [1, channels] or update[-1] % batch:
            raise self.error(
                f"has '{tensor.name}' with dims {update}, expected [1, {channels}, {batch} x stride]: the channels of "
                "all outputs, and new samples for each window",
                "input.dims",
            )
        if len({one.data_type for one in (tensor, *config.output)}) > 1 or element_bytes(tensor.data_type) is None:
            raise self.error(
                f"has '{tensor.name}' of {config_name(tensor.data_type)}, expected one type of numbers for all its "
                "tensors",
                "input.data_type",
            )
        stride = update[-1] // batch
        self.check_sizes({"stride_size": stride, "snapshot_size": samples, "batch_size": batch})
        axes = [dims[1] if len(dims) > 2 else 0 for dims in outputs]
        return {"stride": stride, "snapshot": samples, "batch": batch, "channels": axes}

    def states(self, update: Mapping[str, Any]) -> Shapes:
        """The newest samples of all channels."""
        return window_states(sum(max(one, 1) for one in update["channels"]), update["snapshot"])

    def _named_channels(self) -> dict[str, int]:
        """Outputs by name: their channels, 0 for those without an axis for them."""
        named: dict[str, int] = {}
        parts = self.text("channels").split(",")
        for part in parts:
            name, colon, count = part.strip().partition(":")
            channels = read_int(count, 1, 2**31 - 1) if colon else 0
            if not name or channels is None or name in named or len(parts) > MAX_STEP_TENSORS:
                configured = self.text("channels")
                raise self.error(
                    f"needs outputs, or a parameter 'channels' such as 'strain:2,witness'; got '{configured}'",
                    "parameters.channels",
                )
            named[name] = channels
        return named


def _channels(dims: list[int]) -> int:
    return dims[1] if len(dims) > 2 else 1
