"""The sizes of a snapshotter and of an averager, found from the tensors that they are made for.

All sizes are in samples. A tensor of two axes has one channel, and no axis for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Final, SupportsIndex

from alipes.config.streaming_states import Shapes, mean_states, window_states
from alipes.errors import ConfigError
from alipes.repository.tensors import ExposedTensor, Shape, describe_shape

__all__ = ["Means", "Windows", "means_of", "windows_for"]

_FLOATS: Final = ("FP32", "FP64")


@dataclass(frozen=True, slots=True)
class Windows:
    """What a snapshotter makes: for each stride that comes, a window that ends with it.

    Attributes:
        names: Names of the outputs.
        channels: Channels of each output; 0 for one channel without an axis for it.
        stride: New samples of each window.
        snapshot: Samples of a window.
        batch: Windows of a request.
        datatype: Element type, as the V2 protocol names it.
    """

    names: tuple[str, ...]
    channels: tuple[int, ...]
    stride: int
    snapshot: int
    batch: int = 1
    datatype: str = "FP32"

    @property
    def all_channels(self) -> int:
        """Channels of an update: those of all outputs, one behind the other."""
        return sum(max(one, 1) for one in self.channels)

    @property
    def update_shape(self) -> tuple[int, ...]:
        """What a request brings."""
        return (1, self.all_channels, self.batch * self.stride)

    @property
    def output_shapes(self) -> dict[str, Shape]:
        """What it gets, by name."""
        return {
            name: (self.batch, *_axis(channels), self.snapshot)
            for name, channels in zip(self.names, self.channels, strict=True)
        }

    @property
    def states(self) -> Shapes:
        """What is kept between two requests, by name."""
        return window_states(self.all_channels, self.snapshot)


@dataclass(frozen=True, slots=True)
class Means:
    """What an averager makes: the mean of all predictions that cover a sample, once no later one does.

    Attributes:
        update: Samples by which each prediction is ahead of the one before it.
        updates: Predictions that make a mean.
        kernel: Samples of a prediction.
        batch: Predictions of a request.
        channels: Channels of a prediction; 0 for one channel without an axis for it.
        datatype: Element type, as the V2 protocol names it.
        unbiased: Whether the first means are those of the predictions that there are.
    """

    update: int
    updates: int
    kernel: int
    batch: int = 1
    channels: int = 0
    datatype: str = "FP32"
    unbiased: bool = False

    @property
    def axis(self) -> tuple[int, ...]:
        """The axis of the channels, where there is one."""
        return _axis(self.channels)

    @property
    def update_shape(self) -> tuple[int, ...]:
        """What a request brings."""
        return (self.batch, *self.axis, self.kernel)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """What it gets."""
        return (1, *self.axis, self.batch * self.update)

    @property
    def sums(self) -> int:
        """Samples, by channel, of the sums that are not complete between two requests."""
        return self.update * (self.updates + self.batch - 1)

    @property
    def states(self) -> Shapes:
        """What is kept between two requests, by name."""
        return mean_states(self.channels, self.sums, unbiased=self.unbiased)


def windows_for(inputs: Sequence[ExposedTensor], stride: int, batch: int) -> Windows:
    """The windows that these inputs of models take.

    Raises:
        ConfigError: If a size is no positive number, or no snapshotter gives all of them what they take.
    """
    stride, batch = _positive("stride_size", stride), _positive("batch_size", batch)
    if not inputs:
        raise ConfigError("a snapshotter needs at least one input to feed, got none", key="inputs")
    for tensor in inputs:
        _check_axes(tensor, "(batch, channels, samples) or (batch, samples)")
    lengths = {tensor.shape[-1] for tensor in inputs}
    if len(lengths) > 1:
        listed = ", ".join(f"{tensor} {describe_shape(tensor.shape)}" for tensor in inputs)
        raise ConfigError(
            f"the inputs of one snapshotter have windows of one length, got {listed}; one snapshotter for each length "
            "feeds them all",
            key="inputs",
        )
    twice = next((tensor for at, tensor in enumerate(inputs) if tensor in inputs[:at]), None)
    if twice is not None:
        raise ConfigError(f"{twice} is listed twice", key="inputs")
    types = {tensor.datatype for tensor in inputs}
    if "BYTES" in types:
        raise ConfigError("a snapshotter keeps numbers; got BYTES", key="data_type")
    if len(types) > 1:
        listed = ", ".join(f"{tensor} {tensor.datatype}" for tensor in inputs)
        raise ConfigError(f"the inputs of one snapshotter have one datatype, got {listed}", key="inputs")
    return Windows(
        tuple(f"{tensor}_snapshot" for tensor in inputs),
        tuple(_channels(tensor) for tensor in inputs),
        stride,
        int(inputs[0].shape[-1] or 0),
        batch,
        inputs[0].datatype,
    )


def means_of(output: ExposedTensor, update: int, updates: int, batch: int | None) -> Means:
    """The means of a model's overlapping predictions.

    Args:
        output: The model's output.
        update: Samples by which each prediction is ahead of the one before it.
        updates: Predictions that make a mean.
        batch: Predictions of a request; None for as many as the output says.

    Raises:
        ConfigError: If a size is no positive number, or no averager takes such predictions.
    """
    update, updates = _positive("update_size", update), _positive("num_updates", updates)
    batch = None if batch is None else _positive("batch_size", batch)
    _check_axes(output, "(batch, channels, samples) or (batch, samples)")
    rows, kernel = output.shape[0], int(output.shape[-1] or 0)
    if batch is None and rows is None:
        raise ConfigError(
            f"{output} has a batch that requests choose; batch_size says how many predictions a request has",
            key="batch_size",
        )
    if batch is not None and rows is not None and batch != rows:
        raise ConfigError(f"{output} has a batch of {rows}, not of {batch}", key="batch_size")
    if output.datatype not in _FLOATS:
        raise ConfigError(f"{output} is {output.datatype}; means are of {' or '.join(_FLOATS)}", key="data_type")
    if update * updates > kernel:
        raise ConfigError(
            f"Not enough data: {updates} updates of {update} samples are more than the {kernel} of {output}",
            key="num_updates",
        )
    return Means(update, updates, kernel, int(batch or rows or 1), _channels(output), output.datatype)


def _positive(name: str, size: SupportsIndex) -> int:
    """A size as a number: whole numbers of numpy and torch are such, too."""
    try:
        number = 0 if isinstance(size, bool) else index(size)
    except TypeError:
        number = 0
    if number < 1:
        raise ConfigError(f"{name} is {size!r}, expected a whole number from 1 on", key=name)
    return number


def _check_axes(tensor: ExposedTensor, expected: str) -> None:
    if not 2 <= len(tensor.shape) <= 3:
        raise ConfigError(f"{tensor} has shape {describe_shape(tensor.shape)}, expected {expected}", key="dims")
    if None in tensor.shape[1:]:
        raise ConfigError(
            f"{tensor} has shape {describe_shape(tensor.shape)}: a streaming tensor has fixed sizes, except the batch",
            key="dims",
        )


def _channels(tensor: ExposedTensor) -> int:
    return int(tensor.shape[1] or 0) if len(tensor.shape) > 2 else 0


def _axis(channels: int) -> tuple[int, ...]:
    return (channels,) if channels else ()
