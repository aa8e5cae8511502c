"""Makes models that stream: the server's own by default, or exported ones for servers that have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from alipes.errors import ConfigError
from alipes.repository.platform import Platform
from alipes.repository.streaming.add import add_prepared
from alipes.repository.streaming.exported import EXPORTED, layer_of
from alipes.repository.streaming.sizes import Means, Windows, means_of, windows_for
from alipes.repository.tensors import ExposedTensor

if TYPE_CHECKING:
    from alipes.repository.model import Model
    from alipes.repository.model_repository import ModelRepository

__all__ = ["make_streaming_input_model", "make_streaming_output_model"]


def make_streaming_input_model(  # noqa: PLR0913 - scripts call it so
    repository: ModelRepository,
    inputs: ExposedTensor | Sequence[ExposedTensor],
    stride_size: int,
    batch_size: int = 1,
    name: str | None = None,
    streams_per_gpu: int = 1,
    *,
    platform: Platform | str = Platform.SNAPSHOTTER,
) -> Model:
    """Make a snapshotter: clients send what is new, the models behind it get their whole windows.

    Its input is `snapshot_update`, `[1, channels, batch_size * stride_size]` with the channels of all inputs in the
    order given. Its outputs are called `<model>.<input>_snapshot`. Each window ends with the newest stride and is bit
    for bit what was sent, with zeros before the first sample. A stride may be as long as a window, or longer.

    Args:
        repository: Where to add it.
        inputs: The inputs to feed: `(batch, channels, samples)` or `(batch, samples)`, with as many samples each.
        stride_size: New samples of each window.
        batch_size: Windows of a request.
        name: Its name; `snapshotter` where left out. A name that is taken gets a number.
        streams_per_gpu: Instances, and with them sequences at a time, of an exported model. The server's own has a slot
            for every sequence.
        platform: `SNAPSHOTTER` for the server's own; `ONNX` or `TORCHSCRIPT` for one that other servers run, which
            needs PyTorch to be made.

    Returns:
        The model, exported as version 1.

    Raises:
        ConfigError: If a size or a shape is none that a snapshotter can have.
    """
    windows = windows_for([inputs] if isinstance(inputs, ExposedTensor) else list(inputs), stride_size, batch_size)
    return _make(repository, windows, Platform(platform), name or "snapshotter", streams_per_gpu)


def make_streaming_output_model(  # noqa: PLR0913, PLR0917 - likewise
    repository: ModelRepository,
    input: ExposedTensor,
    update_size: int,
    num_updates: int,
    batch_size: int | None = None,
    name: str | None = None,
    streams_per_gpu: int = 1,
    *,
    platform: Platform | str = Platform.AVERAGER,
    unbiased_start: bool = False,
) -> Model:
    """Make an averager: overlapping predictions go in, and the mean of all that cover a sample comes out.

    Its input is `update`, shaped as the predictions are; its output is `output_stream`, `[1, channels, batch_size *
    update_size]`. It is `num_updates - 1` updates behind, and its first means lack predictions that never
    came: these count as zero, unless `unbiased_start` says that they do not count.

    Args:
        repository: Where to add it.
        input: The output whose predictions are averaged: `(batch, channels, samples)` or `(batch, samples)`. Of each
            prediction the newest `num_updates * update_size` samples count.
        update_size: Samples by which each prediction is ahead of the one before it.
        num_updates: Predictions that make a mean.
        batch_size: Predictions of a request; None for as many as the output says.
        name: Its name; `aggregator` where left out. A name that is taken gets a number.
        streams_per_gpu: As for a snapshotter.
        platform: `AVERAGER` for the server's own; `ONNX` or `TORCHSCRIPT` likewise.
        unbiased_start: Whether the first means are those of the predictions that there are.

    Returns:
        The model, exported as version 1.

    Raises:
        ConfigError: If a size or a shape is none that an averager can have.
    """
    means = replace(means_of(input, update_size, num_updates, batch_size), unbiased=unbiased_start)
    return _make(repository, means, Platform(platform), name or "aggregator", streams_per_gpu)


def _make(
    repository: ModelRepository, sizes: Windows | Means, platform: Platform, name: str, streams_per_gpu: int
) -> Model:
    native = Platform.SNAPSHOTTER if isinstance(sizes, Windows) else Platform.AVERAGER
    if platform is native:
        return add_prepared(repository, name, platform, streams_per_gpu, sizes)
    if platform not in EXPORTED:
        offered = ", ".join(one.name for one in (native, *EXPORTED))
        raise ConfigError(f"'{name}' cannot be made as {platform.name}; expected {offered}", key="platform")
    # What is exported is copies and sums: it needs no graph of torch.export.
    options = {"dynamo": False} if platform is Platform.ONNX else {}
    return add_prepared(repository, name, platform, streams_per_gpu, layer_of(sizes, platform), **options)
